import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Of a tenant read by one statement. */
const PORTION = 500;
/** Tenants of a run; the others are due in the next. */
const TENANTS = 200;
const FORGET_PORTION = 2_000;

const DUE = sql('usage_due', 'SELECT tenant_id AS "tenantId", at FROM trivet.usage_due($1)');
/** Of a tenant without anything there is the row of no kind. */
const TALLIES = sql(
  'usage_tallies',
  `SELECT y.kind, y.backend_id AS "backendId", b.name AS backend, y.pool, sum(y.things)::text AS things, sum(y.bytes)::text AS bytes
     FROM trivet.tally y JOIN trivet.backend b ON b.tenant_id = y.tenant_id AND b.id = y.backend_id
    WHERE y.tenant_id = $1 AND y.kind IN ('volume', 'snapshot', 'bucket')
    GROUP BY 1, 2, 3, 4`,
);
const IS_FIRST = sql(
  'usage_is_first',
  `SELECT NOT EXISTS (SELECT FROM trivet.usage_hour
                       WHERE tenant_id = $1 AND at >= date_trunc('day', $2::timestamptz, 'UTC') AND at < $2) AS "isFirst"`,
);
/** A portion of the volumes of a pool; the days of those, too, where `$6`. Who repeats it changes nothing. */
const WALK = sql(
  'usage_walk',
  `WITH portion AS MATERIALIZED (
     SELECT id, size_bytes, allocated_bytes, created_at FROM trivet.volume
      WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND id > $4 AND state IN ('ready', 'binned')
      ORDER BY id LIMIT $5
   ), kept AS (
     INSERT INTO trivet.volume_day (tenant_id, volume_id, day, size_bytes, allocated_bytes, week_growth)
     SELECT $1, p.id, d.day, p.size_bytes, p.allocated_bytes,
            p.allocated_bytes - coalesce(w.allocated_bytes, CASE WHEN (p.created_at AT TIME ZONE 'UTC')::date >= d.day - 7 THEN 0 END)
       FROM portion p
      CROSS JOIN (SELECT ($7::timestamptz AT TIME ZONE 'UTC')::date AS day) AS d
       LEFT JOIN trivet.volume_day w ON w.tenant_id = $1 AND w.volume_id = p.id AND w.day = d.day - 7
      WHERE $6::boolean
     ON CONFLICT DO NOTHING
   )
   SELECT count(*)::int AS volumes, coalesce(sum(allocated_bytes), 0)::text AS allocated,
          (SELECT id FROM portion ORDER BY id DESC LIMIT 1) AS last
     FROM portion`,
);
const HOUR = sql(
  'usage_hour',
  `INSERT INTO trivet.usage_hour (tenant_id, at, volumes, volume_bytes, snapshots, buckets, bucket_bytes)
   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING at`,
);
const PARTS = sql(
  'usage_parts',
  `INSERT INTO trivet.usage_part (tenant_id, at, kind, backend_id, pool, backend, things, provisioned_bytes, stored_bytes)
   SELECT $1, $2, n.* FROM unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::numeric[], $9::numeric[]) AS n`,
);
const FORGET = ['usage_part', 'usage_hour'].map(table =>
  sql(
    `usage_forget_${table}`,
    `DELETE FROM trivet.${table} WHERE tenant_id = $1 AND at < now() - $2 * interval '1 day'`,
  ),
);
const FORGET_DAYS = sql(
  'usage_forget_days',
  `DELETE FROM trivet.volume_day
    WHERE tenant_id = $1
      AND ctid = ANY (ARRAY(SELECT ctid FROM trivet.volume_day
                             WHERE tenant_id = $1 AND day < (now() AT TIME ZONE 'UTC')::date - $2::int
                             ORDER BY day LIMIT $3))
   RETURNING 1`,
);

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

interface Tally {
  kind: 'volume' | 'snapshot' | 'bucket';
  backendId: string;
  backend: string;
  pool: string;
  things: string;
  bytes: string;
}

/**
 * Writes down once an hour what each tenant has: how much was promised by tallies, how much volumes have of their pools by
 * portions of their rows. It asks no backend, so none that is silent delays it; a tenant that fails delays no other.
 */
export class UsageSampler implements PeriodicTask {
  readonly name = 'usage';
  readonly everyMs = 60_000;
  readonly scope = 'appliance';
  readonly boundMs = 900_000;
  readonly after = 'pools';

  constructor(
    private readonly database: Pick<Database, 'engine' | 'withTenant'>,
    private readonly keptDays: number,
    private readonly portion = PORTION,
  ) {}

  async run(signal: AbortSignal): Promise<'more' | undefined> {
    const due = await this.database.engine<{ tenantId: string; at: Date }>(DUE, [TENANTS]);
    const errors: unknown[] = [];
    for (const { tenantId, at } of due) {
      if (signal.aborted) return undefined;
      try {
        await this.measure(tenantId, at, signal);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'usage was not measured');
    return due.length === TENANTS ? 'more' : undefined;
  }

  private async measure(tenantId: string, at: Date, signal: AbortSignal): Promise<void> {
    const inTenant = <T>(work: (tx: Tx) => Promise<T>) => this.database.withTenant(tenantId, work);
    const [tallies, isFirst] = await inTenant(async tx => [
      await tx.query<Tally>(TALLIES, [tenantId]),
      (await tx.query<{ isFirst: boolean }>(IS_FIRST, [tenantId, at]))[0]!.isFirst,
    ]);
    const parts: Part[] = [];
    for (const { kind, backendId, backend, pool, things, bytes } of tallies) {
      if (kind === 'snapshot' || things === '0') continue;
      if (kind === 'bucket')
        parts.push({ kind: 'buckets', backendId, backend, pool, things, bytes: '0', stored: bytes });
      else {
        const walk = { tenantId, backendId, pool, at, keeps: isFirst };
        const stored = String(await this.walk(walk, signal));
        parts.push({ kind: 'volumes', backendId, backend, pool, things, bytes, stored });
      }
    }
    signal.throwIfAborted();
    await inTenant(async tx => {
      const hour = await tx.query(HOUR, [tenantId, at, ...totals(tallies)]);
      if (hour.length === 0) return;
      const column = (key: keyof Part) => parts.map(part => part[key]);
      const columns = (['kind', 'backendId', 'pool', 'backend', 'things', 'bytes', 'stored'] as const).map(column);
      if (parts.length > 0) await tx.query(PARTS, [tenantId, at, ...columns]);
      for (const forget of FORGET) await tx.query(forget, [tenantId, this.keptDays]);
    });
    if (isFirst) await this.forgetDays(tenantId, signal);
  }

  /** What the volumes of a pool have of it. */
  private async walk(
    {
      tenantId,
      backendId,
      pool,
      at,
      keeps,
    }: { tenantId: string; backendId: string; pool: string; at: Date; keeps: boolean },
    signal: AbortSignal,
  ): Promise<bigint> {
    let allocated = 0n;
    for (let after = FIRST_ID; ; ) {
      signal.throwIfAborted();
      const [found] = await this.database.withTenant(tenantId, tx =>
        tx.query<{ volumes: number; allocated: string; last: string | null }>(WALK, [
          tenantId,
          backendId,
          pool,
          after,
          this.portion,
          keeps,
          at,
        ]),
      );
      allocated += BigInt(found!.allocated);
      if (found!.volumes < this.portion) return allocated;
      after = found!.last!;
    }
  }

  private async forgetDays(tenantId: string, signal: AbortSignal): Promise<void> {
    for (let left = FORGET_PORTION; left === FORGET_PORTION && !signal.aborted; ) {
      const values = [tenantId, this.keptDays, FORGET_PORTION];
      left = (await this.database.withTenant(tenantId, tx => tx.query(FORGET_DAYS, values))).length;
    }
  }
}

interface Part extends Omit<Tally, 'kind'> {
  kind: 'volumes' | 'buckets';
  stored: string;
}

/** In the order of the columns. */
function totals(tallies: readonly Tally[]): string[] {
  const sum = (kind: Tally['kind'], of: 'things' | 'bytes') =>
    String(tallies.reduce((all, tally) => (tally.kind === kind ? all + BigInt(tally[of]) : all), 0n));
  return [
    sum('volume', 'things'),
    sum('volume', 'bytes'),
    sum('snapshot', 'things'),
    sum('bucket', 'things'),
    sum('bucket', 'bytes'),
  ];
}
