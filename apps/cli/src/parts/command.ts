import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bareEnvironment } from '../environment.js';

export interface CommandOptions {
  env?: Readonly<Record<string, string>>;
  uid?: number;
  gid?: number;
  timeoutMs?: number;
  signal?: AbortSignal;
  input?: string;
  /** Each line of its output, as it comes. */
  onLine?(line: string): void;
}

export class CommandError extends Error {
  constructor(
    message: string,
    readonly stderr: string,
    readonly stdout: string,
  ) {
    super(message);
  }
}

/** Runs a program to its end and resolves to what it printed. The error ends with the last line that it said. */
export function runCommand(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      command,
      args,
      {
        cwd: '/',
        env: { ...bareEnvironment(), ...options.env },
        uid: options.uid,
        gid: options.gid,
        timeout: options.timeoutMs ?? 60_000,
        killSignal: 'SIGKILL',
        signal: options.signal,
        maxBuffer: 16 * 1024 * 1024,
      },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout);
        const lastLine = stderr.trim().split('\n').at(-1) ?? '';
        const why = error.killed ? 'no answer in time' : `code ${error.code ?? error.signal}`;
        reject(new CommandError(`${command} ${args[0] ?? ''}: ${why}${lastLine && `: ${lastLine}`}`, stderr, stdout));
      },
    );
    const { onLine } = options;
    if (onLine && child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
  });
}

/** Path of a program, as the parts' own environment finds it. */
export function findProgram(name: string, path = bareEnvironment().PATH ?? ''): string | undefined {
  for (const folder of path.split(':')) {
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // the next folder
    }
  }
  return undefined;
}
