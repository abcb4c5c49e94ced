import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const PARTS = sql(
  'usage_report_parts',
  `SELECT kind, backend, pool, count(DISTINCT at)::int AS hours, sum(things)::text AS "thingHours",
          sum(provisioned_bytes)::text AS "provisionedByteHours", sum(stored_bytes)::text AS "storedByteHours"
     FROM trivet.usage_part
    WHERE tenant_id = $1 AND at >= $2 AND at < $3
    GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3`,
);
const MEASURED = sql(
  'usage_report_hours',
  'SELECT count(*)::int AS hours FROM trivet.usage_hour WHERE tenant_id = $1 AND at >= $2 AND at < $3',
);

export interface UsagePart {
  kind: 'volumes' | 'buckets';
  backend: string;
  /** '' of an object store. */
  pool: string;
  /** In which there was something. */
  hours: number;
  thingHours: string;
  provisionedByteHours: string;
  storedByteHours: string;
}

/** What a tenant used in a month of UTC: sums over the hours that were measured; an hour that was not counts nothing. */
export async function reportUsage(
  database: Database,
  tenantId: string,
  month: Month,
): Promise<{ measured: number; parts: UsagePart[] }> {
  const range = [tenantId, month.begin, month.end];
  return database.withTenant(tenantId, async tx => ({
    measured: (await tx.query<{ hours: number }>(MEASURED, range))[0]!.hours,
    parts: await tx.query<UsagePart>(PARTS, range),
  }));
}

export interface Month {
  /** `2026-11` */
  name: string;
  begin: Date;
  end: Date;
  /** As far as it is over. */
  until: Date;
}

const HOUR_MS = 3_600_000;

/** @param name `2026-11`; absent: the month that it is */
export function monthOf(name: string | undefined, now: Date): Month {
  const given = name ?? now.toISOString().slice(0, 7);
  const [year, month] = given.split('-').map(Number) as [number, number];
  const begin = new Date(Date.UTC(year, month - 1));
  const end = new Date(Date.UTC(year, month));
  return { name: given, begin, end, until: now < end ? now : end };
}

/** Of a month that are over, for a tenant that was made then: the hour of that and the one that it is now count. */
export function hoursOf({ begin, until }: Month, madeAt: Date): number {
  const first = Math.max(begin.getTime() / HOUR_MS, Math.floor(madeAt.getTime() / HOUR_MS));
  return Math.max(0, Math.ceil(until.getTime() / HOUR_MS) - first);
}
