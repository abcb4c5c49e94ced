import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { Takeover } from '#platform/metrics/takeover-metrics';

/** How long a host has a pool without saying so again. A host that dies is succeeded after it, and a moment. */
export const TERM_MS = 8_000;

/** A pool of a cluster, as this host sees it. */
export interface SeenPool {
  backend: string;
  name: string;
  /** Of this host at the cluster; null: not known yet. */
  address: string | null;
  /** It could serve it now. */
  able: boolean;
  /** It would be let to take it over. */
  takes: boolean;
  /** What it lacks to serve it; null: nothing. */
  lacks: 'cluster' | 'link' | null;
}

export interface Shut {
  host: string;
  address: string;
}

export interface ShutOut {
  fencedAt: string;
  byHost: string;
  /** It is noted, and the cluster may yet have to be told. */
  isUnderWay: boolean;
}

/** Who tells the cluster gives up before, and notes it anew when it tries again. */
const UNDER_WAY_MS = 15_000;

/** Who has a pool, and what stands before serving it. */
export interface HomeOfPool {
  tenantId: string;
  backendId: string;
  pool: string;
  home: string;
  /** Decimal; grows with each host that takes it. */
  fence: string;
  /** It is this host's, for another term from now on. */
  renewed: boolean;
  /** Of the home at the cluster, as it was when it began to serve. */
  address: string | null;
  /** This host is being drained, by a person. */
  drains: boolean;
  /** Whose daemons may still write. */
  toFence: Shut[];
  /** It has just been taken over: why. Null: it has not. */
  takenWhy: Takeover | null;
  /** Why nobody can take it over, although nobody serves it. */
  obstacle: string | null;
}

const KEEP = sql(
  'exports_keep',
  `SELECT tenant_id AS "tenantId", backend_id AS "backendId", pool, home, fence::text, renewed, drains, address, to_fence AS "toFence", obstacle,
          taken_why AS "takenWhy"
     FROM trivet.keep_exports($1, $2, $3)`,
);
const ALONE = sql('exports_alone', 'SELECT trivet.serve_exports_alone($1, $2)');
const FENCED = sql('exports_fenced', 'SELECT trivet.exports_fenced($1, $2, $3, $4) AS still');
const LEAVE = sql('exports_leave', 'SELECT trivet.leave_exports($1, $2, $3, $4, $5, $6) AS how');
const READDRESSED = sql('exports_readdressed', 'SELECT trivet.exports_readdressed($1, $2, $3, $4, $5)');
const RELEASE = sql('exports_release', 'SELECT trivet.release_exports($1, $2, $3, $4, $5)');
const NOTE = sql('cluster_fences_note', 'SELECT trivet.note_cluster_fences($1, $2, $3)');
const OURS = sql(
  'cluster_fence_read',
  `SELECT fenced_at::text AS "fencedAt", by_host AS "byHost",
          fenced_at > now() - $3 * interval '1 ms' AND EXISTS (
            SELECT FROM trivet.pool_home h WHERE h.to_fence @> jsonb_build_array(jsonb_build_object('address', f.address))) AS "isUnderWay"
     FROM trivet.cluster_fence f WHERE fsid = $1 AND address = $2`,
);
const FORGET = sql('cluster_fence_forget', 'SELECT trivet.forget_cluster_fence($1, $2, $3)');

type OfPool = Pick<HomeOfPool, 'backendId' | 'pool' | 'fence'>;

/** Leases of pools, and who was shut out of a cluster, in Postgres. */
export class LeaseStore {
  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly host: string,
  ) {}

  keep(pools: readonly SeenPool[]): Promise<HomeOfPool[]> {
    return this.database.engine<HomeOfPool>(KEEP, [this.host, JSON.stringify(pools), TERM_MS]);
  }

  /** Without leases. */
  async keepAlone(pools: readonly Pick<SeenPool, 'backend' | 'name' | 'address'>[]): Promise<void> {
    await this.database.engine(ALONE, [this.host, JSON.stringify(pools)]);
  }

  /** False: another host has it by now. */
  async fenced({ backendId, pool, fence }: OfPool): Promise<boolean> {
    const [row] = await this.database.engine<{ still: boolean }>(FENCED, [this.host, backendId, pool, fence]);
    return row!.still;
  }

  /** It leaves in order: who has the pool from now on. kept: nobody else, for so long. */
  async leave(
    { backendId, pool, fence }: OfPool,
    worker: string,
    keptMs: number,
  ): Promise<'others' | 'successor' | 'kept'> {
    const asked = [this.host, worker, backendId, pool, fence, keptMs];
    const [row] = await this.database.engine<{ how: 'others' | 'successor' | 'kept' }>(LEAVE, asked);
    return row!.how;
  }

  /** Nothing is served from the address before. */
  async readdressed({ backendId, pool, fence }: OfPool, address: string): Promise<void> {
    await this.database.engine(READDRESSED, [this.host, backendId, pool, fence, address]);
  }

  async release({ backendId, pool, fence }: OfPool, inOrder: boolean): Promise<void> {
    await this.database.engine(RELEASE, [this.host, backendId, pool, fence, inOrder]);
  }

  async noteShutOut(fsid: string, hosts: readonly Shut[]): Promise<void> {
    await this.database.engine(NOTE, [fsid, JSON.stringify(hosts), this.host]);
  }

  /** Undefined: this appliance has not shut that address out. */
  async shutOut(fsid: string, address: string): Promise<ShutOut | undefined> {
    const [row] = await this.database.engine<ShutOut>(OURS, [fsid, address, UNDER_WAY_MS]);
    return row;
  }

  async forgetShutOut(fsid: string, address: string, fencedAt: string): Promise<void> {
    await this.database.engine(FORGET, [fsid, address, fencedAt]);
  }
}
