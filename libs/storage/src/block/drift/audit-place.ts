import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { PortalSets } from '#storage/block/pools/pool-daemons';

/** Where the audit of a pool is: behind the image `after` in the order of their ids, or at what comes after the images. */
export interface ImagePlace {
  kind: 'volume' | 'snapshot' | 'rest';
  after: string;
}

/** Kept in the database: another worker, or this one after a restart, goes on there. */
export interface AuditPlace extends ImagePlace {
  /** By the database's clock; what was found since was found in this pass. */
  began: string;
  /** At `rest`: the share of what is in the pool that is listed next. */
  share?: number;
}

export const FIRST_IMAGE: ImagePlace = { kind: 'volume', after: '00000000-0000-0000-0000-000000000000' };
export const REST: ImagePlace = { ...FIRST_IMAGE, kind: 'rest' };

export interface AuditedPool {
  name: string;
  portals: string[];
  portalSets: PortalSets;
  /** Null: the next pass begins. */
  place: AuditPlace | null;
}

interface Backend {
  tenantId: string;
  backendId: string;
}

/** A pool that is down says nothing about what it holds. */
const POOLS = sql(
  'audit_pools',
  `SELECT name, portals, portal_sets AS "portalSets", audit_place AS place FROM trivet.pool
    WHERE tenant_id = $1 AND backend_id = $2 AND state <> 'down'
      AND (audit_place IS NOT NULL OR audited_at IS NULL OR audited_at < $3::timestamptz)
    ORDER BY position`,
);
const KEEP = sql(
  'audit_keep_place',
  'UPDATE trivet.pool SET audit_place = $4 WHERE tenant_id = $1 AND backend_id = $2 AND name = $3',
);
const END = sql(
  'audit_end',
  `UPDATE trivet.pool SET audit_place = NULL, audited_at = now()
    WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 AND audit_place ->> 'began' = $4`,
);
const AGO = sql('audit_time', "SELECT (now() - $1::float8 * interval '1 ms')::text AS at");

/** Pools whose audit is under way, or was not ended since then. */
export const readAuditedPools = (database: Database, { tenantId, backendId }: Backend, since: string) =>
  database.withTenant(tenantId, tx => tx.query<AuditedPool>(POOLS, [tenantId, backendId, since]));

export async function keepAuditPlace(
  database: Database,
  { tenantId, backendId }: Backend,
  pool: string,
  place: AuditPlace,
): Promise<void> {
  await database.withTenant(tenantId, tx => tx.query(KEEP, [tenantId, backendId, pool, JSON.stringify(place)]));
}

export async function endAudit(
  database: Database,
  { tenantId, backendId }: Backend,
  pool: string,
  began: string,
): Promise<void> {
  await database.withTenant(tenantId, tx => tx.query(END, [tenantId, backendId, pool, began]));
}

export async function timeAgo(database: Database, ms: number): Promise<string> {
  const [row] = await database.engine<{ at: string }>(AGO, [ms]);
  return row!.at;
}
