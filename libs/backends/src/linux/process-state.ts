/** /proc about other processes. Everything is undefined for one that is gone. */
import { readdirSync, readFileSync } from 'node:fs';

/** A pid alone may belong to somebody else by now; with the start time (clock ticks since boot) it may not. */
export interface ProcessIdentity {
  pid: number;
  startTime: string;
}

/** The fields after the command, which stands in brackets and may hold any character. */
function statFields(path: string): string[] | undefined {
  try {
    const stat = readFileSync(path, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** A zombie is gone as well: it does nothing any more. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const fields = statFields(`/proc/${pid}/stat`);
  if (!fields || ['Z', 'X'].includes(fields[0]!)) return undefined;
  return { pid, startTime: fields[19]! };
}

export const isSame = (identity: ProcessIdentity): boolean =>
  identityOf(identity.pid)?.startTime === identity.startTime;

export interface ThreadState {
  /** R, S, D, T, t, ... as proc(5) lists them. */
  state: string;
  /** How often it was put on a processor: grows when it runs, however shortly. */
  switches: number;
}

/** By thread id. */
export function threadsOf(pid: number): Map<string, ThreadState> {
  const threads = new Map<string, ThreadState>();
  let ids: string[] = [];
  try {
    ids = readdirSync(`/proc/${pid}/task`);
  } catch {
    return threads;
  }
  for (const id of ids) {
    const [state] = statFields(`/proc/${pid}/task/${id}/stat`) ?? [];
    if (state !== undefined) threads.set(id, { state, switches: switchesOf(`/proc/${pid}/task/${id}/status`) });
  }
  return threads;
}

function switchesOf(path: string): number {
  try {
    const counts = [...readFileSync(path, 'latin1').matchAll(/^(?:non)?voluntary_ctxt_switches:\s*(\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  } catch {
    return 0;
  }
}
