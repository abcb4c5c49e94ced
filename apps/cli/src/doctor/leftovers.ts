import type { Home } from '../home.js';
import { mountsBelow } from '../processes/mounts.js';
import { commandOf, type ProcessId, parentOf, processesOf } from '../processes/process.js';
import type { State } from '../state.js';
import { livingTgtds } from '../tgt-processes.js';
import { type Finding, ok, warn } from './check.js';

/**
 * Processes that bear the home's mark and belong to nobody: neither the supervisor, nor what it keeps running, nor their
 * children. Without a supervisor that lives all of them, and what is mounted, are left over.
 */
export function checkLeftovers(home: Home, state: State | undefined): Finding[] {
  // Those of a living appliance have findings of their own.
  const daemons = state ? livingTgtds(home).map(({ id }) => id.pid) : [];
  const kept = state ? [state.supervisor.pid, ...state.processes.map(({ pid }) => pid ?? 0)] : [];
  const known = new Set([...kept, ...daemons]);
  const found = leftProcesses(processesOf(home.path), known, parentOf).map(pid =>
    warn('leftover process', `${commandOf(pid)}, pid ${pid}`, state ? `kill ${pid}` : REMEDY),
  );
  if (!state)
    for (const point of mountsBelow(home.path)) found.push(warn('leftover mount', `${point} is mounted`, REMEDY));
  return found.length > 0 ? found : [ok('leftovers', 'none')];
}

const REMEDY = './trivet up clears what an earlier run left; so does ./trivet down';

export function leftProcesses(
  marked: readonly Pick<ProcessId, 'pid'>[],
  known: ReadonlySet<number>,
  parent: (pid: number) => number,
): number[] {
  const belongs = (pid: number): boolean => {
    // No chain of parents is longer than this.
    for (let at = pid, depth = 0; at > 1 && depth < 64; at = parent(at), depth++) if (known.has(at)) return true;
    return false;
  };
  return marked.map(({ pid }) => pid).filter(pid => !belongs(pid));
}
