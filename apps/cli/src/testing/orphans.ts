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

const waitid = libc.func('int waitid(int idtype, unsigned int id, void *info, int options)') as (
  idtype: number,
  id: number,
  info: null,
  options: number,
) => number;

const PR_SET_PDEATHSIG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x01000000;
const P_ALL = 0;

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

/**
 * Whether this process has any child, living or to be reaped; the kernel's one answer. A look through /proc takes its time:
 * it misses who is adopted between the look at the orphan and that at its dying parent.
 */
export function hasChildren(): boolean {
  if (waitid(P_ALL, 0, null, WEXITED | WNOHANG | WNOWAIT) === 0) return true;
  if (koffi.errno() === constants.errno.ECHILD) return false;
  throw new Error(`waitid failed: errno ${koffi.errno()}`);
}
