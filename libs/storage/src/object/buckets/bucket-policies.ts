import type { Grant } from '#backends/object-backend';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** What the policy of a bucket must say: the grants of all accesses to it. */
export interface BucketPolicy {
  name: string;
  /** Absent for a registered bucket. */
  incarnation: string | undefined;
  /** Of a registered one, once it was seen. */
  identity: string | undefined;
  grants: readonly Grant[];
  /** All accounts that may have anything there, whatever it is now. */
  whose: readonly string[];
}

const POLICIES = sql(
  'access_policies',
  `SELECT b.name, b.state, CASE b.origin WHEN 'created' THEN b.id END AS incarnation, b.identity,
          coalesce(json_agg(json_strip_nulls(json_build_object(
            'uid', a.account_id, 'mode', CASE g.state WHEN 'revoked' THEN 'revoked' ELSE g.mode END,
            'signedAs', a.signed_as, 'endsAt', a.expires_at)) ORDER BY a.account_id)
            FILTER (WHERE g.state IN ('applied', 'revoked')), '[]') AS grants,
          coalesce(json_agg(a.account_id ORDER BY a.account_id) FILTER (WHERE a.account_id IS NOT NULL), '[]') AS whose
     FROM trivet.bucket b
     LEFT JOIN trivet.bucket_grant g ON g.tenant_id = b.tenant_id AND g.bucket_id = b.id
     LEFT JOIN trivet.access a ON a.tenant_id = g.tenant_id AND a.id = g.access_id
    WHERE b.tenant_id = $1 AND b.id = ANY ($2)
    GROUP BY b.id, b.name, b.state, b.origin, b.identity
    ORDER BY b.id`,
);

interface PolicyRow extends BucketPolicy {
  state: 'creating' | 'ready' | 'deleting' | 'gone';
}

export async function readPolicies(tx: Tx, tenantId: string, bucketIds: readonly string[]): Promise<PolicyRow[]> {
  const rows = await tx.query<PolicyRow & { incarnation: string | null; identity: string | null }>(POLICIES, [
    tenantId,
    bucketIds,
  ]);
  return rows.map(row => ({
    ...row,
    incarnation: row.incarnation ?? undefined,
    identity: row.identity ?? undefined,
  }));
}
