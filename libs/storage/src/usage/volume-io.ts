import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { daemonIn } from '#storage/block/pools/pool-daemons';

/** From minutes, of which a day is kept, or from hours. */
export type Step = 'minute' | 'hour';

/** Of the volume's pool; of its other daemons only what had the volume. In one hour it may have been at two. */
const OF_VOLUME = (step: Step, table: string) =>
  sql(
    `volume_io_of_volume_${step}`,
    `SELECT i.at, max(i.seconds) AS seconds, coalesce(sum(i.reads[p.n]), 0)::text AS reads,
            coalesce(sum(i.writes[p.n]), 0)::text AS writes, coalesce(sum(i.read_bytes[p.n]), 0)::text AS "readBytes",
            coalesce(sum(i.written_bytes[p.n]), 0)::text AS "writtenBytes"
       FROM trivet.volume v
       LEFT JOIN trivet.pool o ON o.tenant_id = $1 AND o.backend_id = v.backend_id AND o.name = v.pool
       JOIN trivet.${table} i ON i.tenant_id = $1 AND i.backend_id = v.backend_id AND i.pool = v.pool
                             AND i.at >= now() - $3 * interval '1 hour'
      CROSS JOIN LATERAL (SELECT array_position(i.volumes, v.id) AS n) AS p
      WHERE v.tenant_id = $1 AND v.id = $2
        AND (p.n IS NOT NULL OR i.nth = ${daemonIn('jsonb_array_length(o.portal_sets)')})
      GROUP BY i.at ORDER BY i.at`,
  );
/** Each daemon by what it did in the seconds that were measured, whenever in the step that was. */
const OF_TENANT = (step: Step, table: string, bin: string) =>
  sql(
    `volume_io_of_tenant_${step}`,
    `SELECT at, 1 AS seconds, sum(reads)::text AS reads, sum(writes)::text AS writes, sum(read_bytes)::text AS "readBytes",
            sum(written_bytes)::text AS "writtenBytes"
       FROM (SELECT date_bin('${bin}', at, 'epoch') AS at, sum(sums[1]) / sum(seconds) AS reads, sum(sums[2]) / sum(seconds) AS writes,
                    sum(sums[3]) / sum(seconds) AS read_bytes, sum(sums[4]) / sum(seconds) AS written_bytes
               FROM trivet.${table} WHERE tenant_id = $1 AND at >= now() - $2 * interval '1 hour'
              GROUP BY date_bin('${bin}', at, 'epoch'), backend_id, pool, nth) AS daemon
      GROUP BY at ORDER BY at`,
  );
const VOLUME = { minute: OF_VOLUME('minute', 'volume_io'), hour: OF_VOLUME('hour', 'volume_io_hour') };
const TENANT = {
  minute: OF_TENANT('minute', 'volume_io', '5 minutes'),
  hour: OF_TENANT('hour', 'volume_io_hour', '1 hour'),
};

/** Of the last look at each daemon, if that is no older than three. */
const TOP = sql(
  'volume_io_top',
  `SELECT v.id, v.name, v.pool, b.at, b.seconds, b.reads::text, b.writes::text, b.read_bytes::text AS "readBytes",
          b.written_bytes::text AS "writtenBytes"
     FROM (SELECT e.*, i.at, i.seconds
             FROM (SELECT DISTINCT ON (backend_id, pool, nth) * FROM trivet.volume_io
                    WHERE tenant_id = $1 AND at > now() - interval '3 minutes'
                    ORDER BY backend_id, pool, nth, at DESC) AS i,
                  unnest(i.volumes, i.reads, i.writes, i.read_bytes, i.written_bytes)
                    AS e (volume, reads, writes, read_bytes, written_bytes)
            ORDER BY CASE WHEN $2 = 'iops' THEN e.reads + e.writes ELSE e.read_bytes + e.written_bytes END / i.seconds DESC
            LIMIT $3) AS b
     JOIN trivet.volume v ON v.tenant_id = $1 AND v.id = b.volume
    ORDER BY CASE WHEN $2 = 'iops' THEN b.reads + b.writes ELSE b.read_bytes + b.written_bytes END / b.seconds DESC`,
);

interface Counted {
  at: Date;
  seconds: number;
  reads: string;
  writes: string;
  readBytes: string;
  writtenBytes: string;
}

export interface Rates {
  /** When it was measured; of hours when they began. */
  at: Date;
  readsPerSecond: number;
  writesPerSecond: number;
  readBytesPerSecond: number;
  writtenBytesPerSecond: number;
}

export interface BusyVolume extends Rates {
  id: string;
  name: string;
  pool: string;
}

/** The oldest first; what was not measured is not there. */
export async function ioOfVolume(
  database: Database,
  tenantId: string,
  volumeId: string,
  { step, hours }: { step: Step; hours: number },
): Promise<Rates[]> {
  const rows = await database.withTenant(tenantId, tx => tx.query<Counted>(VOLUME[step], [tenantId, volumeId, hours]));
  return rows.map(ratesOf);
}

/** Of all volumes of a tenant together; instead of minutes five of them, since daemons are not asked at one instant. */
export async function ioOfTenant(
  database: Database,
  tenantId: string,
  { step, hours }: { step: Step; hours: number },
): Promise<Rates[]> {
  const rows = await database.withTenant(tenantId, tx => tx.query<Counted>(TENANT[step], [tenantId, hours]));
  return rows.map(ratesOf);
}

export async function busiest(
  database: Database,
  tenantId: string,
  by: 'iops' | 'throughput',
  limit: number,
): Promise<BusyVolume[]> {
  const rows = await database.withTenant(tenantId, tx =>
    tx.query<Counted & { id: string; name: string; pool: string }>(TOP, [tenantId, by, limit]),
  );
  return rows.map(row => ({ id: row.id, name: row.name, pool: row.pool, ...ratesOf(row) }));
}

function ratesOf({ at, seconds, reads, writes, readBytes, writtenBytes }: Counted): Rates {
  const rate = (sum: string): number => Math.round((Number(sum) / seconds) * 10) / 10;
  return {
    at,
    readsPerSecond: rate(reads),
    writesPerSecond: rate(writes),
    readBytesPerSecond: Math.round(Number(readBytes) / seconds),
    writtenBytesPerSecond: Math.round(Number(writtenBytes) / seconds),
  };
}
