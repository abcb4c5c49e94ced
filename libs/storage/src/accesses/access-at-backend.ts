import type { Grant } from '#backends/object-backend';
import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { decodeSealed, type SecretBox } from '#platform/secrets';
import { sql } from '#platform/sql';
import type { AccessCredentials } from '#storage/accesses/access-store';
import { credentialsPlace } from '#storage/accesses/accesses';
import type { DesiredAccess } from '#storage/desired-state';

/** What the backend must hold for one access: its principal, and the whole policy of each bucket concerned. */
export interface AccessAtBackend {
  uid: string;
  name: string;
  credentials: AccessCredentials | undefined;
  desired: DesiredAccess;
  policies: readonly BucketPolicy[];
}

export interface BucketPolicy {
  name: string;
  /** Absent for a registered bucket. */
  incarnation: string | undefined;
  /** Of a registered one, once it was seen. */
  identity: string | undefined;
  grants: readonly Grant[];
}

const READ = sql(
  'access_read',
  `SELECT a.account_id AS uid, a.name, a.desired, s.sealed
     FROM trivet.access a
     LEFT JOIN trivet.secret s ON s.tenant_id = a.tenant_id AND s.owner_table = 'access' AND s.owner_id = a.id
                              AND s.name = 'credentials'
    WHERE a.tenant_id = $1 AND a.id = $2`,
);
const POLICIES = sql(
  'access_policies',
  `SELECT b.name, b.state, CASE b.origin WHEN 'created' THEN b.id END AS incarnation, b.identity,
          coalesce(json_agg(json_build_object(
            'uid', a.account_id, 'mode', CASE g.state WHEN 'revoked' THEN 'revoked' ELSE g.mode END) ORDER BY a.account_id)
            FILTER (WHERE g.state IN ('applied', 'revoked')), '[]') AS grants
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

export async function readAccess(
  tx: Tx,
  secrets: SecretBox,
  tenantId: string,
  accessId: string,
  bucketIds: readonly string[],
): Promise<AccessAtBackend> {
  const [access] = await tx.query<{ uid: string; name: string; desired: DesiredAccess; sealed: Buffer | null }>(READ, [
    tenantId,
    accessId,
  ]);
  if (!access) throw new StorageError('internal', `access ${accessId} has no row`, { retry: 'person' });
  const { uid, name, desired, sealed } = access;
  const credentials = sealed
    ? (JSON.parse(secrets.openText(decodeSealed(sealed), credentialsPlace(tenantId, accessId))) as AccessCredentials)
    : undefined;
  const rows = await readPolicies(tx, tenantId, bucketIds);
  const policies = rows.filter(row => row.state !== 'gone').map(({ state: _, ...policy }) => policy);
  return { uid, name, desired, credentials, policies };
}
