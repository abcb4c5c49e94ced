import type { Database } from '#platform/database';
import { isStorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/log';
import { sql } from '#platform/sql';
import type { BackendDirectory } from '#storage/backend-directory';

const log = createLogger('bucket-meter');

const EVERY_MS = 5_000;
/** What a bucket holds is asked so often; more often where it counts for a limit. */
const MEASURE_MS = 600_000;
const LIMITED_MEASURE_MS = 60_000;
/** Of a tenant in a round, and tenants without a limit in a round. */
const PORTION = 20;
const CALL_MS = 5_000;
/** The store's own limit is compared so often, though nothing changed here. */
const COMPARE_MS = 600_000;

const TENANTS = sql('meter_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()');
/** Claimed at once, so that one probe per bucket and interval is made however many workers there are. */
const CLAIM = sql(
  'meter_claim',
  `UPDATE trivet.bucket b SET measured_at = now()
     FROM (SELECT id FROM trivet.bucket
            WHERE tenant_id = $1 AND state = 'ready'
              AND measured_at <= now() - $2 * interval '1 ms'
            ORDER BY measured_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
    WHERE b.tenant_id = $1 AND b.id = due.id
   RETURNING b.id, b.name, b.backend_id AS "backendId"`,
);
const SET = sql('meter_set', 'UPDATE trivet.bucket SET used_bytes = $3 WHERE tenant_id = $1 AND id = $2');
const LIMITS = sql('meter_limits', 'SELECT tenant_id AS "tenantId", value::text AS value FROM trivet.byte_limits()');
/** What counts for the tenant's limit and is not under the store's own: other backends, and buckets of other owners. */
const ELSEWHERE = sql(
  'meter_elsewhere',
  `SELECT b.id AS "backendId",
          coalesce((SELECT sum(o.used_bytes) FROM trivet.bucket o
                     WHERE o.tenant_id = $1 AND o.state <> 'gone'
                       AND (o.backend_id <> b.id OR o.origin = 'registered')), 0)::text AS bytes,
          told_limit::text AS told, told_at > now() - $2 * interval '1 ms' AS fresh
     FROM trivet.backend b WHERE b.tenant_id = $1`,
);
const TOLD = sql(
  'meter_told',
  'UPDATE trivet.backend SET told_limit = $3, told_at = now() WHERE tenant_id = $1 AND id = $2',
);

interface Elsewhere {
  backendId: string;
  bytes: string;
  told: string | null;
  fresh: boolean | null;
}

interface Due {
  id: string;
  name: string;
  backendId: string;
}

/**
 * Asks object stores what buckets hold, and has them keep the tenant's limit of bytes: Postgres refuses new buckets when it
 * is reached, but what is written into those that are there only the store can refuse.
 */
export class BucketMeter {
  private doneAt = Number.NEGATIVE_INFINITY;
  private sweptAt = Number.NEGATIVE_INFINITY;
  /** Tenants without a limit that this worker has still to look at. */
  private toMeasure = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly backends: BackendDirectory,
  ) {}

  async round(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.doneAt < EVERY_MS) return;
    const limits = await this.database.call<{ tenantId: string; value: string | null }>(LIMITS, []);
    for (const { tenantId, value } of limits) {
      if (signal.aborted) return;
      await this.measure(tenantId, LIMITED_MEASURE_MS, signal);
      await this.limit(tenantId, value === null ? undefined : BigInt(value), signal);
    }
    if (performance.now() - this.sweptAt >= MEASURE_MS) {
      const all = await this.database.engine<{ tenantId: string }>(TENANTS);
      this.toMeasure = new Set(all.map(({ tenantId }) => tenantId));
      this.sweptAt = performance.now();
    }
    for (const tenantId of [...this.toMeasure].slice(0, PORTION)) {
      if (signal.aborted) return;
      const all = (await this.measure(tenantId, MEASURE_MS, signal)) < PORTION;
      if (all) this.toMeasure.delete(tenantId);
    }
    this.doneAt = performance.now();
  }

  /** How many were due. */
  private async measure(tenantId: string, everyMs: number, signal: AbortSignal): Promise<number> {
    const due = await this.database.withTenant(tenantId, tx => tx.query<Due>(CLAIM, [tenantId, everyMs, PORTION]));
    for (const { id, name, backendId } of due) {
      if (signal.aborted) break;
      await unlessUnanswered('cannot measure a bucket', async () => {
        const backend = await this.backends.open(tenantId, backendId);
        const bytes = await backend.measureBucket(name, bounded(signal));
        if (bytes === undefined) return;
        await this.database.withTenant(tenantId, tx => tx.query(SET, [tenantId, id, bytes]));
      });
    }
    return due.length;
  }

  private async limit(tenantId: string, bytes: bigint | undefined, signal: AbortSignal): Promise<void> {
    const rows = await this.database.withTenant(tenantId, tx => tx.query<Elsewhere>(ELSEWHERE, [tenantId, COMPARE_MS]));
    for (const { backendId, bytes: elsewhere, told, fresh } of rows) {
      if (signal.aborted) return;
      const rest = bytes === undefined ? undefined : bytes - BigInt(elsewhere);
      const here = rest === undefined || rest > 0n ? rest : 0n;
      const same = told === (here?.toString() ?? null);
      if (same && (here === undefined || fresh)) continue;
      if (!(await this.backends.knows(tenantId, backendId))) continue;
      await unlessUnanswered('cannot limit a tenant at its object store', async () => {
        const backend = await this.backends.open(tenantId, backendId);
        // Compared again some minutes later, whoever spoke last.
        await backend.limitTenant(here, unleased(bounded(signal), CALL_MS));
        await this.database.withTenant(tenantId, tx => tx.query(TOLD, [tenantId, backendId, here ?? null]));
      });
    }
  }
}

const bounded = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);

async function unlessUnanswered(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isStorageError(error)) log.warn({ err: error.toJSON() }, `${what}; the next round tries again`);
    else log.error({ err: error }, `defect: ${what}`);
  }
}
