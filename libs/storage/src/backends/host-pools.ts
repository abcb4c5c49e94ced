import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { Takeover } from '#platform/metrics/takeover-metrics';
import type { BackendKinds } from '#storage/backends/backend-kinds';

const POOLS = sql(
  'storage_host_pools',
  `SELECT tenant, backend, kind, pool, shares, volumes, published, lacks,
          taken_from AS "takenFrom", taken_at AS "takenAt", taken_why AS "takenWhy"
     FROM trivet.pools_of_storage_host($1)`,
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
  /** Of a cluster: what this host lacks to serve it; it goes on as long as no other one can. */
  lacks: 'cluster' | 'link' | null;
  /** Of a cluster: how this host came to have it; null: it was the first. */
  takenOver: { from: string; at: Date; why: Takeover } | null;
}

type Row = Omit<HostPool, 'moves' | 'takenOver'> & {
  kind: string;
  takenFrom: string | null;
  takenAt: Date;
  takenWhy: Takeover;
};

/** What a storage host would take away with it. */
export async function poolsOfHost(database: Database, kinds: BackendKinds, host: string): Promise<HostPool[]> {
  const rows = await database.call<Row>(POOLS, [host]);
  return rows.map(({ kind, takenFrom, takenAt, takenWhy, ...row }) => ({
    ...row,
    moves: kinds.isOfCluster(kind) ? 'by_itself' : 'with_disk',
    takenOver: takenFrom === null ? null : { from: takenFrom, at: takenAt, why: takenWhy },
  }));
}
