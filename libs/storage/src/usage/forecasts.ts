import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { PROMISED_OF_POOL } from '#storage/block/pools/pool-capacity';
import { daysUntil, fitLine, type Sample } from '#storage/usage/linear-fit';

/** How far back a forecast looks. */
export const FORECAST_DAYS = 28;

/** The last of each day of UTC. */
const DAILY = (columns: string, from: string): string =>
  `(SELECT coalesce(json_agg(d ORDER BY d.at), '[]')
      FROM (SELECT DISTINCT ON (date_trunc('day', s.at, 'UTC')) extract(epoch FROM s.at) * 1000 AS at, ${columns}
              FROM ${from} AND s.at > now() - interval '${FORECAST_DAYS} days'
             ORDER BY date_trunc('day', s.at, 'UTC'), s.at DESC) AS d)`;

const POOLS = sql(
  'forecast_pools',
  `SELECT b.name AS backend, p.name, p.total_bytes::text AS total, p.used_bytes::text AS used,
          ${PROMISED_OF_POOL}::text AS promised,
          ${DAILY(
            's.used_bytes AS used, s.total_bytes AS total',
            'trivet.pool_sample s WHERE s.tenant_id = p.tenant_id AND s.backend_id = p.backend_id AND s.pool = p.name',
          )} AS samples
     FROM trivet.pool p JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    WHERE p.tenant_id = $1 ORDER BY b.name, p.position`,
);
const HOURS = (column: string): string =>
  DAILY(`s.${column} AS used, 0 AS total`, 'trivet.usage_hour s WHERE s.tenant_id = $1');
const QUOTAS = sql(
  'forecast_quotas',
  `SELECT q.key AS name, q.value::text AS total, trivet.quota_used($1, q.key)::text AS used,
          CASE q.key WHEN 'volumes' THEN ${HOURS('volumes')} WHEN 'volume_bytes' THEN ${HOURS('volume_bytes')}
                     WHEN 'snapshots' THEN ${HOURS('snapshots')} WHEN 'buckets' THEN ${HOURS('buckets')}
                     ELSE ${HOURS('bucket_bytes')} END AS samples
     FROM trivet.tenant_quota q
    WHERE q.tenant_id = $1 AND q.key IN ('volumes', 'volume_bytes', 'snapshots', 'buckets', 'bucket_bytes')
    ORDER BY q.key`,
);

export interface Forecast {
  kind: 'pool' | 'quota';
  /** Of a pool; null of a quota. */
  backend: string | null;
  /** Of the pool; the key of the quota. */
  name: string;
  total: string;
  used: string;
  /** To volumes, of all who share the pool; null of a quota. */
  promised: string | null;
  /** promised by total; null of a quota, and of a pool that nobody has seen yet. */
  overcommit: number | null;
  /** Days that the line is drawn through. */
  samples: number;
  /** null: there are fewer than five, and nothing is said. */
  trend: {
    perDay: number;
    perDayLow: number;
    perDayHigh: number;
    /** null: never, or not in ten years. */
    daysToFull: number | null;
    daysAtLeast: number | null;
    daysAtMost: number | null;
  } | null;
}

interface Seen {
  /** Milliseconds. */
  at: number;
  used: number;
  total: number;
}
type Limited = Pick<Forecast, 'name' | 'total' | 'used'> & { samples: Seen[] };

/** When the pools and quotas of a tenant will be used up, if they go on growing as in the last four weeks. */
export async function readForecasts(database: Database, tenantId: string): Promise<Forecast[]> {
  const [pools, quotas] = await database.withTenant(tenantId, async tx => [
    await tx.query<Limited & { backend: string; promised: string }>(POOLS, [tenantId]),
    await tx.query<Limited>(QUOTAS, [tenantId]),
  ]);
  return [
    ...pools.map(pool => ({
      kind: 'pool' as const,
      backend: pool.backend,
      promised: pool.promised,
      overcommit: pool.total === '0' ? null : Math.round((Number(pool.promised) / Number(pool.total)) * 100) / 100,
      ...forecast(pool),
    })),
    ...quotas.map(quota => ({
      kind: 'quota' as const,
      backend: null,
      promised: null,
      overcommit: null,
      ...forecast(quota),
    })),
  ];
}

function forecast({ name, total, used, samples }: Limited) {
  const line = fitLine(gone(samples));
  const left = Number(total) - Number(used);
  const trend = line
    ? {
        perDay: Math.round(line.perDay),
        perDayLow: Math.round(line.low),
        perDayHigh: Math.round(line.high),
        daysToFull: daysUntil(left, line.perDay),
        daysAtLeast: daysUntil(left, line.high),
        daysAtMost: daysUntil(left, line.low),
      }
    : null;
  return { name, total, used, samples: samples.length, trend };
}

/**
 * What is used; where the total itself moves from day to day, what is not free any more: pools of a cluster share its room, and one
 * is full by what others take, too. A pool that was enlarged once has two totals.
 */
export function gone(samples: readonly Seen[]): Sample[] {
  const isShared = new Set(samples.map(({ total }) => total)).size * 2 > samples.length;
  return samples.map(({ at, used, total }) => ({ at, value: isShared ? used - total : used }));
}
