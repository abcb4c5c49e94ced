import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { HOME_MARK } from '#platform/config/config';

/** A pid alone may be somebody else's by now; with its start time (and the boot it belongs to) it may not. */
export interface ProcessId {
  pid: number;
  startTime: string;
}

let bootId: string | undefined;
function boot(): string {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return bootId;
}

/** Start time of a living process; undefined when it is gone, or only waits to be reaped. */
function startTimeOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the command in brackets, and may hold blanks and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  if (state === 'X' || (state === 'Z' && !hasOtherThreads(pid))) return undefined;
  return `${boot()}:${fields[19]}`;
}

/** The first thread may be gone before the others, which still hold files and ports. */
function hasOtherThreads(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}

export function identify(pid: number): ProcessId | undefined {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? undefined : { pid, startTime };
}

export const isAlive = (id: ProcessId): boolean => startTimeOf(id.pid) === id.startTime;

/** Sends a signal to exactly that process; false when it is gone. */
export function signal(id: ProcessId, name: NodeJS.Signals): boolean {
  if (!isAlive(id)) return false;
  try {
    process.kill(id.pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Resolves to true when the process is gone within `ms`. */
export async function waitForExit(id: ProcessId, ms: number): Promise<boolean> {
  const end = Date.now() + ms;
  while (isAlive(id)) {
    if (Date.now() >= end) return false;
    await delay(30);
  }
  return true;
}

/** Asks a process to end, and kills it after `graceMs`. */
export async function endProcess(id: ProcessId, name: NodeJS.Signals, graceMs: number): Promise<void> {
  // A stopped process answers SIGTERM only once it runs again.
  if (!signal(id, name)) return;
  signal(id, 'SIGCONT');
  if (await waitForExit(id, graceMs)) return;
  signal(id, 'SIGKILL');
  if (!(await waitForExit(id, 5_000))) throw new Error(`process ${id.pid} does not end, not even by SIGKILL`);
}

/** PostgreSQL would wait for its clients; tgtd ignores SIGTERM. */
const OTHER_SIGNALS: Readonly<Record<string, NodeJS.Signals>> = { postgres: 'SIGINT', tgtd: 'SIGKILL' };

/** By the signal that its program understands. */
export const endPart = (id: ProcessId): Promise<void> =>
  endProcess(id, OTHER_SIGNALS[commandOf(id.pid)] ?? 'SIGTERM', 20_000);

export function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0;
  }
}

/** Of all processes that there are. */
export const pids = (): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => Number.isInteger(pid));

/** Also those that only wait to be reaped. */
export const childrenOf = (parent: number): number[] => pids().filter(pid => parentOf(pid) === parent);

export function markOf(pid: number): string | undefined {
  try {
    const prefix = `${HOME_MARK}=`;
    const entry = readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .find(line => line.startsWith(prefix));
    return entry?.slice(prefix.length);
  } catch {
    return undefined;
  }
}

/** Where links lead; the path itself, where nothing is there. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Living processes started for this home, by whichever supervisor; never the caller itself. */
export function processesOf(home: string): ProcessId[] {
  const found: ProcessId[] = [];
  const wanted = realPath(home);
  for (const pid of pids()) {
    if (pid === process.pid) continue;
    const mark = markOf(pid);
    if (mark === undefined || (mark !== home && realPath(mark) !== wanted)) continue;
    const id = identify(pid);
    if (id !== undefined) found.push(id);
  }
  return found;
}

/** Its arguments, each ended by a NUL; empty when it is gone. */
export function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** What a process is called, for a message. */
export function commandOf(pid: number): string {
  const [command = ''] = commandLineOf(pid).split('\0');
  return command === '' ? '?' : command.slice(command.lastIndexOf('/') + 1);
}

export function workingFolderOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}
