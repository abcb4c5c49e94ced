import { createRequire } from 'node:module';
import { constants } from 'node:os';

const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
const libc = koffi.load(null);
const prctl = libc.func('int prctl(int option, unsigned long value)') as (option: number, value: number) => number;
const waitpid = libc.func('int waitpid(int pid, _Out_ int *status, int options)') as (
  pid: number,
  status: number[],
  options: number,
) => number;

const PR_SET_PDEATHSIG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
const WNOHANG = 1;

function set(option: number, value: number): void {
  if (prctl(option, value) !== 0) throw new Error(`prctl(${option}) failed: errno ${koffi.errno()}`);
}

/** From now on whoever descends from this process becomes its child when the parent in between is gone. */
export const adoptOrphans = (): void => set(PR_SET_CHILD_SUBREAPER, 1);

/** This process gets the signal when who started it is gone. */
export function endWithParent(signal: NodeJS.Signals): void {
  set(PR_SET_PDEATHSIG, constants.signals[signal]);
}

/** Node reaps only what it started. */
export function reap(children: readonly number[]): void {
  for (const pid of children) waitpid(pid, [0], WNOHANG);
}
