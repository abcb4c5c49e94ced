import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

const MAIN = join(PACKAGE_ROOT, 'dist', 'apps', 'cli', 'src', 'main.js');

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

/** One to be ended by the test; `ended` gives its exit code, or nothing when a signal ended it. */
export function startTool(
  args: readonly string[],
  stdin: 'ignore' | 'pipe' = 'ignore',
): { child: ChildProcess; ended: Promise<number | null> } {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: environment('/nonexistent'),
    stdio: [stdin, 'ignore', 'ignore'],
  });
  return { child, ended: new Promise(resolve => child.once('exit', code => resolve(code))) };
}
