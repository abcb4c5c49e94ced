import type { SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type BucketPolicy, readPolicies } from '#storage/object/buckets/bucket-policies';
import { type AccessCredentials, openCredentials } from '#storage/object/rights/credentials';
import type { DesiredAccess } from '#storage/shared/desired-state';

/** What the backend must hold for one access: its principal, and the whole policy of each bucket concerned. */
export interface AccessAtBackend {
  uid: string;
  name: string;
  credentials: AccessCredentials | undefined;
  desired: DesiredAccess;
  policies: readonly BucketPolicy[];
  /** Its key was issued in this attempt, and is committed. */
  issued?: boolean;
  /** Sealed anew: what the store signed for it, to be kept in place of what is there. */
  resealed?: Buffer;
}

const READ = sql(
  'access_read',
  `SELECT a.account_id AS uid, a.name, a.desired, s.sealed
     FROM trivet.access a
     LEFT JOIN trivet.secret s ON s.tenant_id = a.tenant_id AND s.owner_table = 'access' AND s.owner_id = a.id
                              AND s.name = 'credentials'
    WHERE a.tenant_id = $1 AND a.id = $2`,
);
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
  const credentials = sealed ? openCredentials(secrets, tenantId, accessId, sealed) : undefined;
  const rows = await readPolicies(tx, tenantId, bucketIds);
  const policies = rows.filter(row => row.state !== 'gone').map(({ state: _, ...policy }) => policy);
  return { uid, name, desired, credentials, policies };
}
