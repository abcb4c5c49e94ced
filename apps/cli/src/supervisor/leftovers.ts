import { existsSync, rmSync } from 'node:fs';
import type { Home } from '../home.js';
import { stopTgt } from '../parts/tgt.js';
import { unmountPool } from '../parts/xfs-pool.js';
import { named } from '../processes/holders.js';
import { commandOf, endPart, type ProcessId, parentOf, processesOf } from '../processes/process.js';
import { livingTgtds } from '../tgt-processes.js';
import { remainsOf } from './remains.js';

/** As in an orderly stop: who needs another one ends before it. The osd waits for the mon to say goodbye. */
const STOP_ORDER = [['node'], ['radosgw'], ['ceph-osd'], ['ceph-mon', 'redis-server', 'postgres']];

/**
 * Ends processes that a killed supervisor of this home left, apps before parts; then its stale sockets and mounts.
 * Resolves to what of the home is still there, a line each, which nobody may take for gone.
 */
export async function clearLeftovers(home: Home, say: (line: string) => void): Promise<string[]> {
  // They go in an orderly way, after the workers that would start them again.
  const found = processesOf(home.path).filter(({ pid }) => commandOf(pid) !== 'tgtd');
  const pids = new Set(found.map(id => id.pid));
  // Children go with their parents, which know how to end them; PostgreSQL's must not get its signals.
  const heads = found.filter(id => !pids.has(parentOf(id.pid)));
  if (heads.length > 0) say(`ending ${heads.length} processes of an earlier run`);
  const end = (ids: readonly ProcessId[]) =>
    Promise.all(ids.map(id => endPart(id).catch(error => say(`${named(id)}: ${(error as Error).message}`))));
  for (const commands of STOP_ORDER) await end(heads.filter(id => commands.includes(commandOf(id.pid))));
  await stopTgt(home, say);
  // What had another parent, and outlived it; a tgtd whose folder is gone.
  await end([...processesOf(home.path), ...livingTgtds(home).map(({ id }) => id)]);
  // Nothing of ours lives, and this socket is known to be ours.
  if (existsSync(home.cosiSocket)) rmSync(home.cosiSocket);
  await unmountPool(home);
  return remainsOf(home);
}
