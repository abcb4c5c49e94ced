import { existsSync, rmSync } from 'node:fs';
import type { Home } from '../home.js';
import { stopTgt } from '../parts/tgt.js';
import { unmountPool } from '../parts/xfs-pool.js';
import { commandOf, endPart, parentOf, processesOf } from '../processes/process.js';

/** As in an orderly stop: who needs another one ends before it. The osd waits for the mon to say goodbye. */
const STOP_ORDER = [['node'], ['radosgw'], ['ceph-osd'], ['ceph-mon', 'redis-server', 'postgres']];

/** Ends processes that a killed supervisor of this home left, apps before parts; then its stale sockets and mounts. */
export async function clearLeftovers(home: Home, say: (line: string) => void): Promise<void> {
  const found = processesOf(home.path);
  const pids = new Set(found.map(id => id.pid));
  // Children go with their parents, which know how to end them; PostgreSQL's must not get its signals.
  const heads = found.filter(id => !pids.has(parentOf(id.pid)));
  if (heads.length > 0) say(`ending ${heads.length} processes of an earlier run`);
  for (const commands of STOP_ORDER) {
    const now = heads.filter(id => commands.includes(commandOf(id.pid)));
    await Promise.all(now.map(endPart));
  }
  // What had another parent, and outlived it.
  await Promise.all(processesOf(home.path).map(endPart));
  // Nothing of ours lives, and this socket is known to be ours.
  if (existsSync(home.cosiSocket)) rmSync(home.cosiSocket);
  // It serves files of the pool, without bearing the home's mark.
  await stopTgt(home, say);
  await unmountPool(home, say);
}
