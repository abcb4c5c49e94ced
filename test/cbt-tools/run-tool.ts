import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { programFile } from '#platform/package-root';

const MAIN = programFile('trivet');

const environment = (home: string) => ({ PATH: '/usr/bin:/bin', NODE_NO_WARNINGS: '1', TRIVET_HOME: home });

export interface ToolOutcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** A command of the tools as its user runs it, with no home and no settings. */
export function runTool(args: readonly string[], home = '/nonexistent'): Promise<ToolOutcome> {
  return new Promise(resolve => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { env: environment(home), maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr }),
    );
  });
}

/** As arguments of Node: for a shell's pipe. */
export const toolArgs = (...args: readonly string[]): string[] => [MAIN, ...args];

interface StartedTool {
  child: ChildProcess;
  /** Its exit code, or nothing when a signal ended it. */
  ended: Promise<number | null>;
  /** What it has said so far, to whom it may concern. */
  said(): string;
}

/** One to be ended by the test. */
export function startTool(args: readonly string[], stdin: 'ignore' | 'pipe' = 'ignore'): StartedTool {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: environment('/nonexistent'),
    stdio: [stdin, 'pipe', 'pipe'],
  });
  let said = '';
  for (const output of [child.stdout!, child.stderr!])
    output.on('data', (text: Buffer) => {
      said += text;
    });
  return { child, ended: new Promise(resolve => child.once('close', code => resolve(code))), said: () => said };
}
