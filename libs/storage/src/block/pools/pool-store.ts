import type { DaemonRef } from '#backends/exporter';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import type { BlockCaller } from '#storage/block/block-storage';
import { daemonAt, type PortalSets } from '#storage/block/pools/pool-daemons';

/** A pool as the worker last saw it. */
export interface PoolRow {
  name: string;
  state: 'up' | 'down';
  reason: string | null;
  clone: 'reflink' | 'copy';
  /** Of all daemons. */
  portals: string[];
  portalSets: PortalSets;
  withoutChap: boolean;
}

const POOLS = sql(
  'pool_list',
  `SELECT name, state, reason, clone, portals, portal_sets AS "portalSets", without_chap AS "withoutChap"
     FROM trivet.pool WHERE tenant_id = $1 AND backend_id = $2 ORDER BY position`,
);

export const readPools = (tx: Tx, tenantId: string, backendId: string): Promise<PoolRow[]> =>
  tx.query<PoolRow>(POOLS, [tenantId, backendId]);

/** The named pool, or the backend's first one; it must be up. */
export async function choosePool(tx: Tx, caller: BlockCaller, name: string | undefined): Promise<string> {
  const pools = await readPools(tx, caller.tenantId, caller.backendId);
  if (pools.length === 0)
    throw new StorageError('unavailable', 'no worker has looked at the pools of this backend yet; try again');
  const pool = name === undefined ? pools[0] : pools.find(candidate => candidate.name === name);
  if (!pool) throw invalid('pool', `no pool ${name}; there are ${pools.map(each => each.name).join(', ')}`);
  if (pool.state === 'down')
    throw new StorageError('unavailable', `pool ${pool.name} is down: ${pool.reason ?? 'no reason known'}`);
  return pool.name;
}

/** Who exports a volume of the pool (invariant I4). @param place the daemon that the volume was given */
export async function daemonOf(
  tx: Tx,
  tenantId: string,
  backendId: string,
  name: string,
  place: number | undefined,
): Promise<DaemonRef> {
  const pool = (await readPools(tx, tenantId, backendId)).find(candidate => candidate.name === name);
  return daemonAt(tenantId, { pool: name, portals: pool?.portals ?? [], portalSets: pool?.portalSets ?? [] }, place);
}
