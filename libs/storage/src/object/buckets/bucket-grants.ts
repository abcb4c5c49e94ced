import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Accesses before buckets, as a Grant takes them. */
const LOCK_HOLDERS = sql(
  'access_lock_holders',
  `SELECT FROM trivet.access
    WHERE tenant_id = $1
      AND id = ANY (ARRAY(
            SELECT g.access_id
              FROM trivet.bucket b JOIN trivet.bucket_grant g ON g.tenant_id = $1 AND g.bucket_id = b.id
             WHERE b.tenant_id = $1 AND b.backend_id = $2 AND b.name = $3 AND b.state <> 'gone' AND b.origin = 'registered'))
    ORDER BY id FOR UPDATE`,
);
const LATER_GRANTS = sql(
  'access_later_grants',
  `SELECT FROM trivet.bucket_grant g JOIN trivet.access a ON a.tenant_id = g.tenant_id AND a.id = g.access_id
    WHERE g.tenant_id = $1 AND g.bucket_id = $2 AND g.state <> 'removing' AND a.state <> 'granting' LIMIT 1`,
);
/** One that is being granted, or put right, is answered after the bucket's Delete, and has what it was granted. */
const LEAVE = sql(
  'access_leave_bucket',
  `WITH idle AS MATERIALIZED (
     SELECT id FROM trivet.access
      WHERE tenant_id = $1 AND state <> 'granting'
        AND id IN (SELECT access_id FROM trivet.bucket_grant
                    WHERE tenant_id = $1 AND bucket_id = $2 AND state = ANY ($3))
      ORDER BY id FOR UPDATE
   ), leaving AS (
     UPDATE trivet.bucket_grant g SET state = 'removing' FROM idle
      WHERE g.tenant_id = $1 AND g.bucket_id = $2 AND g.access_id = idle.id
     RETURNING g.access_id
   )
   UPDATE trivet.access SET stale = true FROM leaving
    WHERE tenant_id = $1 AND id = leaving.access_id`,
);

export async function lockHolders(
  tx: Tx,
  { tenantId, backendId }: { tenantId: string; backendId: string },
  bucketName: string,
): Promise<void> {
  await tx.query(LOCK_HOLDERS, [tenantId, backendId, bucketName]);
}

/** Whether anybody has more of a bucket that is being let go of than that leaves. */
export async function hasLaterGrants(tx: Tx, tenantId: string, bucketId: string): Promise<boolean> {
  return (await tx.query(LATER_GRANTS, [tenantId, bucketId])).length > 0;
}

/** What accesses have at a registered bucket leaves it with the next policy; `revoked`: what a lasting Deny is left of. */
export async function leaveBucket(tx: Tx, tenantId: string, bucketId: string, what: 'all' | 'revoked'): Promise<void> {
  const states = what === 'all' ? ['wanted', 'applied', 'revoked'] : ['revoked'];
  await tx.query(LEAVE, [tenantId, bucketId, states]);
}
