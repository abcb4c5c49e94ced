import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { BackendKinds } from '#storage/backends/backend-kinds';

const POOLS = sql(
  'storage_host_pools',
  'SELECT tenant, backend, kind, pool, shares, volumes, published FROM trivet.pools_of_storage_host($1)',
);

/** A pool of a storage host, with what its shares hold. */
export interface HostPool {
  tenant: string;
  backend: string;
  pool: string;
  shares: number;
  volumes: number;
  published: number;
  /** with_disk: to wherever its disk goes; by_itself: another host can have it as it lies. */
  moves: 'with_disk' | 'by_itself';
}

/** What a storage host would take away with it. */
export async function poolsOfHost(database: Database, kinds: BackendKinds, host: string): Promise<HostPool[]> {
  const rows = await database.call<Omit<HostPool, 'moves'> & { kind: string }>(POOLS, [host]);
  return rows.map(({ kind, ...row }) => ({ ...row, moves: kinds.isOfCluster(kind) ? 'by_itself' : 'with_disk' }));
}
