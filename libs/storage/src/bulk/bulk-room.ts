import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Children of one tenant under way at once, of all its bulks together; a stop ends all but these. */
export const AT_ONCE = 32;
/** Begun between two points, at which a bulk hears of a stop. */
export const PORTION = 16;

/** What the items of a bulk become: each of its class, and none with a place of another one. */
const CLASSES = ['fast', 'destroy'];

const FOUND = sql(
  'bulk_room',
  `SELECT (SELECT count(*)::int FROM trivet.bulk_item i
             JOIN trivet.operation o ON o.tenant_id = i.tenant_id AND o.id = i.operation_id
            WHERE i.tenant_id = $1 AND i.state = 'begun' AND o.state IN ('pending', 'running')) AS begun,
          (SELECT count(*)::int FROM trivet.operation
            WHERE tenant_id = $1 AND kind = 'bulk.run' AND finished_at IS NULL) AS bulks,
          (SELECT min(trivet.cap_of(class, $2)) FROM unnest($3::text[]) AS class) AS cap,
          quota.value::float8 AS quota,
          CASE WHEN quota.value IS NOT NULL THEN trivet.quota_used($1, 'operations')::int ELSE 0 END AS used
     FROM (VALUES (1)) AS always
     LEFT JOIN trivet.tenant_quota AS quota ON quota.tenant_id = $1 AND quota.key = 'operations'`,
);

export interface TenantLoad {
  /** Under way for items of all its bulks. */
  begun: number;
  /** That have not ended. */
  bulks: number;
  /** Places that it may have at a backend in a class, as things are now. */
  cap: number;
  /** Of operations; null: no limit. */
  quota: number | null;
  /** As the quota counts them, the bulks among them. */
  used: number;
}

export async function readLoad(database: Database, tenantId: string, cap: number): Promise<TenantLoad> {
  const [load] = await database.withTenant(tenantId, tx => tx.query<TenantLoad>(FOUND, [tenantId, cap, CLASSES]));
  return load!;
}

/**
 * How many items of a bulk may begin now. Deletions go before what else waits at their backend, and count for the quota of
 * operations: so all bulks of a tenant together leave it half of its places, and half of that quota. A bulk that has none under
 * way begins one whatever the others have: else one that stands still would hold up all.
 * @param running of this bulk
 */
export function roomOf(running: number, { begun, bulks, cap, quota, used }: TenantLoad): number {
  const atOnce = Math.max(1, Math.min(AT_ONCE, Math.floor(cap / 2)));
  const share = Math.max(1, Math.floor(atOnce / Math.max(1, bulks)));
  const left = quota === null ? Number.POSITIVE_INFINITY : Math.floor(quota / 2) - used;
  const room = Math.min(PORTION, share - running, atOnce - begun, left);
  return Math.max(running === 0 ? 1 : 0, room);
}
