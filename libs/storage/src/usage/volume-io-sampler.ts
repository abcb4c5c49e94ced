import type { DaemonRef, TargetIo } from '#backends/exporter';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import { daemonsOfPool, type PortalSets } from '#storage/block/pools/pool-daemons';
import { poolsElsewhere } from '#storage/block/pools/pool-homes';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('volume-io');

const CALL_MS = 10_000;
/** One daemon that does not answer costs a call's time, and meanwhile others have their turn. */
const BACKENDS_AT_ONCE = 4;
/** Minutes are kept so long; hours as long as usage is. */
const KEPT_HOURS = 25;

/** Rows of one transaction. */
const FORGET_PORTION = 1_000;
const FORGET_EVERY_MS = 3_600_000;

const POOLS = sql(
  'volume_io_pools',
  `SELECT name AS pool, portals, portal_sets AS "portalSets", state = 'up' AS "isUp" FROM trivet.pool
    WHERE tenant_id = $1 AND backend_id = $2 AND cardinality(portals) > 0 ORDER BY name`,
);
/** A target that is nobody's any more is left out. */
const WRITE = sql(
  'volume_io_write',
  `INSERT INTO trivet.volume_io (tenant_id, backend_id, pool, nth, at, seconds, sums, volumes, reads, writes, read_bytes, written_bytes)
   SELECT $1, $2, $3, $4, now(), $5,
          ARRAY[coalesce(sum(c.reads), 0), coalesce(sum(c.writes), 0), coalesce(sum(c.read_bytes), 0), coalesce(sum(c.written_bytes), 0)]::bigint[],
          coalesce(array_agg(v.id ORDER BY v.id), '{}'), coalesce(array_agg(c.reads ORDER BY v.id), '{}'),
          coalesce(array_agg(c.writes ORDER BY v.id), '{}'), coalesce(array_agg(c.read_bytes ORDER BY v.id), '{}'),
          coalesce(array_agg(c.written_bytes ORDER BY v.id), '{}')
     FROM unnest($6::int[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[]) AS c (tid, reads, writes, read_bytes, written_bytes)
     JOIN trivet.volume v ON v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND v.tid = c.tid
   ON CONFLICT DO NOTHING`,
);
/** Hours that are over, and that are in no row of hours yet: those behind the last one. */
const SUM_UP = sql(
  'volume_io_sum_up',
  `WITH past AS (
     SELECT i.*, date_trunc('hour', i.at, 'UTC') AS hour FROM trivet.volume_io i
      WHERE i.tenant_id = $1 AND i.backend_id = $2 AND i.pool = $3 AND i.at < date_trunc('hour', now(), 'UTC')
        AND i.at >= coalesce((SELECT h.at + interval '1 hour' FROM trivet.volume_io_hour h
                               WHERE h.tenant_id = $1 AND h.backend_id = $2 AND h.pool = $3 ORDER BY h.at DESC LIMIT 1), '-infinity')
   ), each AS (
     SELECT p.hour, p.nth, e.volume, sum(e.reads) AS reads, sum(e.writes) AS writes, sum(e.read_bytes) AS read_bytes,
            sum(e.written_bytes) AS written_bytes
       FROM past p, unnest(p.volumes, p.reads, p.writes, p.read_bytes, p.written_bytes) AS e (volume, reads, writes, read_bytes, written_bytes)
      GROUP BY 1, 2, 3
   ), listed AS (
     SELECT hour, nth, array_agg(volume ORDER BY volume) AS volumes, array_agg(reads::bigint ORDER BY volume) AS reads,
            array_agg(writes::bigint ORDER BY volume) AS writes, array_agg(read_bytes::bigint ORDER BY volume) AS read_bytes,
            array_agg(written_bytes::bigint ORDER BY volume) AS written_bytes
       FROM each GROUP BY 1, 2
   ), measured AS (
     SELECT hour, nth, sum(seconds) AS seconds,
            ARRAY[sum(sums[1]), sum(sums[2]), sum(sums[3]), sum(sums[4])]::bigint[] AS sums
       FROM past GROUP BY 1, 2
   )
   INSERT INTO trivet.volume_io_hour (tenant_id, backend_id, pool, nth, at, seconds, sums, volumes, reads, writes, read_bytes, written_bytes)
   SELECT $1, $2, $3, m.nth, m.hour, m.seconds, m.sums, coalesce(l.volumes, '{}'), coalesce(l.reads, '{}'), coalesce(l.writes, '{}'),
          coalesce(l.read_bytes, '{}'), coalesce(l.written_bytes, '{}')
     FROM measured m LEFT JOIN listed l USING (hour, nth)
   ON CONFLICT DO NOTHING`,
);
const FORGET = (table: string) =>
  sql(
    `${table}_forget`,
    `DELETE FROM trivet.${table}
      WHERE tenant_id = $1
        AND ctid = ANY (ARRAY(SELECT ctid FROM trivet.${table}
                               WHERE tenant_id = $1 AND backend_id = $2 AND at < now() - $3 * interval '1 hour' LIMIT $4))
     RETURNING 1`,
  );
const FORGET_MINUTES = FORGET('volume_io');
const FORGET_HOURS = FORGET('volume_io_hour');

interface ExportedPool {
  pool: string;
  portals: string[];
  portalSets: PortalSets;
  /** Daemons of one that is down may hang, and cost others their minute. */
  isUp: boolean;
}

/**
 * Asks the daemons of this host each minute what hosts did with their volumes, one request a daemon however many it serves. What a
 * daemon counted before it was looked at, or while nobody looked for long, belongs to no minute and is told nowhere.
 */
export class VolumeIoSampler implements PeriodicTask {
  readonly name = 'volume-io';
  readonly everyMs = 60_000;
  readonly scope = 'appliance';
  readonly after = 'pools';
  readonly ofHost = true;
  /** Milliseconds since the epoch; the first run forgets. */
  private forgetsAt = 0;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    private readonly keptDays: number,
    /** Whose daemons alone are asked; absent: all. */
    private readonly host?: string,
    private readonly portion = FORGET_PORTION,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const now = Date.now();
    const forgets = now >= this.forgetsAt;
    if (forgets) this.forgetsAt = now + FORGET_EVERY_MS;
    const visit = (backend: RegisteredBlockBackend): Promise<void> =>
      this.measure(backend, signal).finally(() => (forgets ? this.forget(backend, signal) : undefined));
    await eachBlockBackend(this.database, visit, { atOnce: BACKENDS_AT_ONCE });
  }

  private async measure(backend: RegisteredBlockBackend, signal: AbortSignal): Promise<void> {
    const { tenantId, backendId } = backend;
    const inTenant = <T>(work: (tx: Tx) => Promise<T>) => this.database.withTenant(tenantId, work);
    const pools = await inTenant(tx => tx.query<ExportedPool>(POOLS, [tenantId, backendId]));
    if (pools.length === 0) return;
    const elsewhere = await poolsElsewhere(this.database, backend, this.host);
    const store = await this.blocks.open(tenantId, backendId);
    for (const pool of pools) {
      if (signal.aborted) return;
      if (elsewhere.has(pool.pool)) continue;
      for (const daemon of pool.isUp ? daemonsOfPool(tenantId, pool) : []) {
        const bounded = AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
        const done = await store.exporter.ioSince(daemon, bounded).catch(unanswered);
        if (done) await inTenant(tx => tx.query(WRITE, rowOf(backendId, daemon, done)));
      }
      await inTenant(tx => tx.query(SUM_UP, [tenantId, backendId, pool.pool]));
    }
  }

  /** Of pools that are exported no more, too. */
  private async forget({ tenantId, backendId }: RegisteredBlockBackend, signal: AbortSignal): Promise<void> {
    for (const [statement, hours] of [
      [FORGET_MINUTES, KEPT_HOURS],
      [FORGET_HOURS, this.keptDays * 24],
    ] as const)
      for (let left = this.portion; left === this.portion && !signal.aborted; ) {
        const values = [tenantId, backendId, hours, this.portion];
        left = (await this.database.withTenant(tenantId, tx => tx.query(statement, values))).length;
      }
  }
}

/** A gap in a graph; that a daemon does not answer is found and told by others. */
function unanswered(error: unknown): undefined {
  if (!isStorageError(error)) throw error;
  log.warn({ err: error.toJSON() }, 'what volumes do cannot be read; it is asked again in a minute');
}

function rowOf(
  backendId: string,
  { tenantId, pool, nth = 0 }: DaemonRef,
  { seconds, targets }: { seconds: number; targets: readonly TargetIo[] },
): unknown[] {
  const column = (key: keyof TargetIo) => targets.map(target => target[key]);
  const columns = (['tid', 'reads', 'writes', 'readBytes', 'writtenBytes'] as const).map(column);
  return [tenantId, backendId, pool, nth, seconds, ...columns];
}
