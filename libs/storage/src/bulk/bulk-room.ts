import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { OF_OPERATIONS } from '#storage/bulk/bulk-actions';
import { HELD_UP } from '#storage/bulk/bulk-items';

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
            WHERE i.tenant_id = $1 AND i.state = 'begun' AND o.state IN ('pending', 'running') AND NOT (${HELD_UP})) AS begun,
          (SELECT count(*)::int FROM trivet.operation
            WHERE tenant_id = $1 AND kind = 'bulk.run' AND finished_at IS NULL
              AND request ->> 'action' <> ALL ($4)) AS bulks,
          ARRAY(SELECT backend_id FROM trivet.backend_circuit
                 WHERE tenant_id = $1 AND trivet.circuit_state(open_until) <> 'closed') AS silent,
          (SELECT min(trivet.cap_of(class, $2)) FROM unnest($3::text[]) AS class) AS cap,
          quota.value::float8 AS quota,
          CASE WHEN quota.value IS NOT NULL THEN trivet.quota_used($1, 'operations')::int ELSE 0 END AS used
     FROM (VALUES (1)) AS always
     LEFT JOIN trivet.tenant_quota AS quota ON quota.tenant_id = $1 AND quota.key = 'operations'`,
);

export interface TenantLoad {
  /** Under way for items of all its bulks, and not held up. */
  begun: number;
  /** That have not ended; those of operations need no room. */
  bulks: number;
  /** Backends that do not answer now. */
  silent: readonly string[];
  /** Places that it may have at a backend in a class, as things are now. */
  cap: number;
  /** Of operations; null: no limit. */
  quota: number | null;
  /** As the quota counts them, the bulks among them. */
  used: number;
}

export async function readLoad(database: Database, tenantId: string, cap: number): Promise<TenantLoad> {
  const [load] = await database.withTenant(tenantId, tx =>
    tx.query<TenantLoad>(FOUND, [tenantId, cap, CLASSES, OF_OPERATIONS]),
  );
  return load!;
}

/**
 * How many items of a bulk may begin now. Deletions go before what else waits at their backend, and count for the quota of
 * operations: so all bulks of a tenant together leave it half of its places, and half of that quota. A bulk that has none under
 * way begins one whatever the others have: else one that stands still would hold up all. From as many on as may be under way that
 * wait for a person it begins none: what ails them would have all the others.
 * @param running of this bulk
 * @param parked of this bulk
 */
export function roomOf(
  running: number,
  { begun, bulks, cap, quota, used }: Omit<TenantLoad, 'silent'>,
  parked: number,
): number {
  if (parked >= AT_ONCE) return 0;
  const atOnce = Math.max(1, Math.min(AT_ONCE, Math.floor(cap / 2)));
  const share = Math.max(1, Math.floor(atOnce / Math.max(1, bulks)));
  const left = quota === null ? Number.POSITIVE_INFINITY : Math.floor(quota / 2) - used;
  const room = Math.min(PORTION, share - running, atOnce - begun, left);
  return Math.max(running === 0 ? 1 : 0, room);
}
