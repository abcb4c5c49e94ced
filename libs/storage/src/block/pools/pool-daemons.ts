/**
 * The daemons that export a pool: one, or one for each set of its portals, so that a pool of Ceph may have more volumes published than
 * one tgtd bears. A volume is given one with its first publication, and keeps it while any host has the volume (`target.daemon`, absent:
 * the first). Where the pool has fewer by now, the first one has what those beyond had.
 */
import type { DaemonRef } from '#backends/exporter';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** By daemon; empty where the pool has one, which has all portals. */
export type PortalSets = readonly (readonly string[])[];

interface Exported {
  pool: string;
  portals: readonly string[];
  portalSets: PortalSets;
}

export const daemonsOfPool = (tenantId: string, { pool, portals, portalSets }: Exported): DaemonRef[] =>
  portalSets.length === 0
    ? [{ tenantId, pool, portals, nth: 0, of: 1 }]
    : portalSets.map((set, nth) => ({ tenantId, pool, portals: set, nth, of: portalSets.length }));

export function daemonAt(tenantId: string, exported: Exported, place = 0): DaemonRef {
  const daemons = daemonsOfPool(tenantId, exported);
  return daemons[place] ?? daemons[0]!;
}

/** Which daemon has the volume: of rows `v`, of a pool that has as many as `of` says. */
export const daemonIn = (of: string): string =>
  `CASE WHEN (v.target ->> 'daemon')::int < ${of}::int THEN (v.target ->> 'daemon')::int ELSE 0 END`;

/** Until the end of the transaction: of two publications at once the second sees where the first one went. */
const ONE_AT_A_TIME = sql(
  'pool_daemon_lock',
  `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'daemon', $1::uuid, $2::uuid, $3::text), 0))`,
);
/** No host has it, says the empty name (NOWHERE); from now on it counts as one that is to be applied. */
const TAKES_PART = sql(
  'pool_daemon_takes_part',
  "UPDATE trivet.volume SET applied_instance = NULL WHERE tenant_id = $1 AND id = $2 AND applied_instance = ''",
);
/** Those that are just being withdrawn count: their units are open. */
const SERVED = ['IS NULL', "> ''"]
  .map(
    applied => `SELECT v.id, ${daemonIn('$4')} AS nth FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND v.tid IS NOT NULL AND v.applied_instance ${applied}
       AND v.id <> $5 AND (SELECT p.state FROM trivet.publication p WHERE p.tenant_id = $1 AND p.volume_id = v.id LIMIT 1) IS NOT NULL`,
  )
  .join(' UNION ALL ');
const FEWEST = sql(
  'pool_daemon_fewest',
  `SELECT d.nth FROM generate_series(0, $4::int - 1) AS d (nth) LEFT JOIN (${SERVED}) AS served USING (nth)
    GROUP BY d.nth ORDER BY count(served.id), d.nth LIMIT 1`,
);

/** The daemon that serves the fewest volumes, for one that no host has yet. */
export async function emptiestDaemon(
  tx: Tx,
  { tenantId, backendId }: { tenantId: string; backendId: string },
  { name, portalSets }: { name: string; portalSets: PortalSets },
  volumeId: string,
): Promise<number> {
  if (portalSets.length === 0) return 0;
  await tx.query(ONE_AT_A_TIME, [tenantId, backendId, name]);
  await tx.query(TAKES_PART, [tenantId, volumeId]);
  const [row] = await tx.query<{ nth: number }>(FEWEST, [tenantId, backendId, name, portalSets.length, volumeId]);
  return row!.nth;
}
