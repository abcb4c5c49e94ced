import { createInterface } from 'node:readline/promises';
import { LauncherError } from '../home.js';
import { EXIT } from './api-error.js';
import { printable } from './output.js';

/** Throws unless somebody says yes. `what`: all that goes. */
export async function confirm(what: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY) throw new LauncherError(`${printable(what)}: give --yes to do it`, EXIT.data);
  if ((await askTerminal(`${printable(what)}. Type yes: `)) !== 'yes') throw new LauncherError('nothing was done');
}

export async function askTerminal(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(question)).trim();
  } finally {
    terminal.close();
  }
}
