import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** In the order of the index; those that are no more are left out afterwards, so there may be fewer. */
const MOST = sql(
  'volume_growth_most',
  `SELECT v.id, v.name, v.pool, v.size_bytes::text AS size, g.allocated_bytes::text AS allocated,
          g.week_growth::text AS growth, to_char(g.day, 'YYYY-MM-DD') AS day
     FROM (SELECT volume_id, allocated_bytes, week_growth, day FROM trivet.volume_day
            WHERE tenant_id = $1 AND week_growth > 0
              AND day = (SELECT (at AT TIME ZONE 'UTC')::date FROM trivet.usage_hour WHERE tenant_id = $1 ORDER BY at DESC LIMIT 1)
            ORDER BY week_growth DESC NULLS LAST LIMIT $2) AS g
     JOIN trivet.volume v ON v.tenant_id = $1 AND v.id = g.volume_id AND v.state <> 'gone'
    ORDER BY g.week_growth DESC`,
);
const DAYS = sql(
  'volume_growth_days',
  `SELECT to_char(day, 'YYYY-MM-DD') AS day, size_bytes::text AS size, allocated_bytes::text AS allocated FROM trivet.volume_day
    WHERE tenant_id = $1 AND volume_id = $2 ORDER BY volume_day.day DESC LIMIT $3`,
);

export interface GrownVolume {
  id: string;
  name: string;
  pool: string;
  size: string;
  allocated: string;
  /** Bytes since a week before; of one that was made meanwhile, since nothing. */
  growth: string;
  /** `2026-11-27`: when that was so. */
  day: string;
}

export interface VolumeDay {
  day: string;
  size: string;
  allocated: string;
}

/** Those that grew most in the week before the last day that was measured. */
export const mostGrown = (database: Database, tenantId: string, limit: number): Promise<GrownVolume[]> =>
  database.withTenant(tenantId, tx => tx.query<GrownVolume>(MOST, [tenantId, limit]));

/** The newest first, so many at most. */
export const daysOfVolume = (database: Database, tenantId: string, id: string, limit: number): Promise<VolumeDay[]> =>
  database.withTenant(tenantId, tx => tx.query<VolumeDay>(DAYS, [tenantId, id, limit]));
