import { type PeriodicTask, WOKEN_SELDOM } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { answers, besides, type StoreVisit, StoreVisits, storeOf } from '#storage/shared/store-visits';

const log = createLogger('bucket-meter');

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
              AND measured_at <= now() - $2 * interval '1 ms' AND ${answers('bucket.backend_id')} AND ${besides('bucket.backend_id', '$4')}
            ORDER BY measured_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
    WHERE b.tenant_id = $1 AND b.id = due.id
   RETURNING b.id, b.name, b.backend_id AS "backendId", ${storeOf('b')}`,
);
const SET = sql('meter_set', 'UPDATE trivet.bucket SET used_bytes = $3 WHERE tenant_id = $1 AND id = $2');
const LIMITS = sql('meter_limits', 'SELECT tenant_id AS "tenantId", value::text AS value FROM trivet.byte_limits()');
/** What counts for the tenant's limit and is not under the store's own: other backends, and buckets of other owners. */
const ELSEWHERE = sql(
  'meter_elsewhere',
  `SELECT b.id AS "backendId", coalesce(b.shared_from, b.id) AS store,
          coalesce((SELECT sum(y.bytes) FROM trivet.tally y
                     WHERE y.tenant_id = $1 AND y.kind = CASE WHEN y.backend_id = b.id THEN 'registered' ELSE 'bucket' END), 0)::text
            AS bytes,
          told_limit::text AS told, told_at > now() - $2 * interval '1 ms' AS fresh
     FROM trivet.backend b WHERE b.tenant_id = $1 AND ${answers('b.id')}`,
);
const TOLD = sql(
  'meter_told',
  'UPDATE trivet.backend SET told_limit = $3, told_at = now() WHERE tenant_id = $1 AND id = $2',
);

const GIVE_BACK = sql(
  'meter_give_back',
  `UPDATE trivet.bucket SET measured_at = now() - $3 * interval '1 ms' WHERE tenant_id = $1 AND id = $2`,
);

interface Measurement extends StoreVisit {
  tenantId: string;
  id: string;
  everyMs: number;
}

interface Elsewhere {
  backendId: string;
  store: string;
  bytes: string;
  told: string | null;
  fresh: boolean | null;
}

interface Due {
  id: string;
  name: string;
  backendId: string;
  store: string;
}

/**
 * Asks object stores what buckets hold, and has them keep the tenant's limit of bytes: Postgres refuses new buckets when it
 * is reached, but what is written into those that are there only the store can refuse.
 */
export class BucketMeter implements PeriodicTask {
  readonly name = 'bucket-usage';
  readonly everyMs = 5_000;
  /** A store that is slow takes its time. */
  readonly boundMs = 900_000;
  readonly scope = 'appliance';
  readonly calm = WOKEN_SELDOM;
  private readonly measuring = new StoreVisits(log, 'cannot measure a bucket');
  private readonly telling = new StoreVisits(log, 'cannot limit a tenant at its object store');
  private sweptAt = Number.NEGATIVE_INFINITY;
  /** Tenants without a limit that this worker has still to look at. */
  private toMeasure = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly backends: BackendDirectory,
  ) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const limits = await this.database.call<{ tenantId: string; value: string | null }>(LIMITS, []);
    const measured: Measurement[] = [];
    for (const { tenantId } of limits)
      measured.push(...(await this.toBeMeasured(tenantId, LIMITED_MEASURE_MS, signal)));
    for (const tenantId of await this.withoutLimit()) {
      const due = await this.toBeMeasured(tenantId, MEASURE_MS, signal);
      if (due.length < PORTION) this.toMeasure.delete(tenantId);
      measured.push(...due);
    }
    await this.giveBack(await this.measuring.make(measured, signal));
    const told: StoreVisit[] = [];
    for (const { tenantId, value } of limits)
      told.push(...(await this.toBeTold(tenantId, value === null ? undefined : BigInt(value), signal)));
    await this.telling.make(told, signal);
    return limits.length + measured.length + this.toMeasure.size === 0 ? 'calm' : undefined;
  }

  /** So many tenants of those whose turn it is in this sweep. */
  private async withoutLimit(): Promise<string[]> {
    if (performance.now() - this.sweptAt >= MEASURE_MS) {
      const all = await this.database.engine<{ tenantId: string }>(TENANTS);
      this.toMeasure = new Set(all.map(({ tenantId }) => tenantId));
      this.sweptAt = performance.now();
    }
    return [...this.toMeasure].slice(0, PORTION);
  }

  private async toBeMeasured(tenantId: string, everyMs: number, signal: AbortSignal): Promise<Measurement[]> {
    const due = await this.database.withTenant(tenantId, tx =>
      tx.query<Due>(CLAIM, [tenantId, everyMs, PORTION, this.measuring.silent]),
    );
    return due.map(({ id, name, backendId, store }) => ({
      tenantId,
      id,
      everyMs,
      store,
      ask: async () => {
        const backend = await this.backends.open(tenantId, backendId);
        const bytes = await backend.measureBucket(name, bounded(signal));
        if (bytes === undefined) return;
        await this.database.withTenant(tenantId, tx => tx.query(SET, [tenantId, id, bytes]));
      },
    }));
  }

  /** What was claimed and not asked is due again. */
  private async giveBack(left: readonly Measurement[]): Promise<void> {
    for (const { tenantId, id, everyMs } of left)
      await this.database.withTenant(tenantId, tx => tx.query(GIVE_BACK, [tenantId, id, everyMs]));
  }

  private async toBeTold(tenantId: string, bytes: bigint | undefined, signal: AbortSignal): Promise<StoreVisit[]> {
    const rows = await this.database.withTenant(tenantId, tx => tx.query<Elsewhere>(ELSEWHERE, [tenantId, COMPARE_MS]));
    return rows.flatMap(({ backendId, store, bytes: elsewhere, told, fresh }) => {
      const rest = bytes === undefined ? undefined : bytes - BigInt(elsewhere);
      const here = rest === undefined || rest > 0n ? rest : 0n;
      const same = told === (here?.toString() ?? null);
      if (same && (here === undefined || fresh)) return [];
      const ask = async (): Promise<void> => {
        if (!(await this.backends.knows(tenantId, backendId))) return;
        const backend = await this.backends.open(tenantId, backendId);
        // Compared again some minutes later, whoever spoke last.
        await backend.limitTenant(here, unleased(bounded(signal), CALL_MS));
        await this.database.withTenant(tenantId, tx => tx.query(TOLD, [tenantId, backendId, here ?? null]));
      };
      return [{ store, ask }];
    });
  }
}

const bounded = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]);
