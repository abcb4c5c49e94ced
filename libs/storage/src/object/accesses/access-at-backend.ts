import type { StoreTraits } from '#backends/object-backend';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type BucketPolicy, readPolicies } from '#storage/object/buckets/bucket-policies';
import { type AccessCredentials, type KeyName, openCredentials } from '#storage/object/rights/credentials';
import type { DesiredAccess } from '#storage/shared/desired-state';

/** What the backend must hold for one access: its principal, and the whole policy of each bucket concerned. */
export interface AccessAtBackend {
  uid: string;
  name: string;
  credentials: AccessCredentials | undefined;
  /** Let in beside it. */
  former?: AccessCredentials;
  /** Its time is not over. */
  formerHolds: boolean;
  /** Made, or issued, and not answered yet. */
  next?: AccessCredentials;
  /** What its store is like, once that was asked. */
  traits?: StoreTraits;
  desired: DesiredAccess;
  policies: readonly BucketPolicy[];
  /** Its key was issued in this attempt, and is committed. */
  issued?: boolean;
  /** Sealed anew: what the store signed for it, to be kept in place of what is there. */
  resealed?: Buffer;
}

const READ = sql(
  'access_read',
  `SELECT a.account_id AS uid, a.name, a.desired, s.sealed, f.sealed AS former, n.sealed AS next,
          coalesce(a.former_until > now(), false) AS "formerHolds"
     FROM trivet.access a ${secretNamed('s', 'credentials')} ${secretNamed('f', 'former')} ${secretNamed('n', 'next')}
    WHERE a.tenant_id = $1 AND a.id = $2`,
);

function secretNamed(alias: string, name: KeyName): string {
  return `LEFT JOIN trivet.secret ${alias} ON ${alias}.tenant_id = a.tenant_id AND ${alias}.owner_table = 'access'
                              AND ${alias}.owner_id = a.id AND ${alias}.name = '${name}'`;
}

interface Row {
  uid: string;
  name: string;
  desired: DesiredAccess;
  sealed: Buffer | null;
  former: Buffer | null;
  next: Buffer | null;
  formerHolds: boolean;
}

export async function readAccess(
  tx: Tx,
  secrets: SecretBox,
  tenantId: string,
  accessId: string,
  bucketIds: readonly string[],
): Promise<AccessAtBackend> {
  const [access] = await tx.query<Row>(READ, [tenantId, accessId]);
  if (!access) throw new StorageError('internal', `access ${accessId} has no row`, { retry: 'person' });
  const { uid, name, desired, formerHolds } = access;
  const open = (sealed: Buffer | null, of: KeyName) =>
    sealed ? openCredentials(secrets, tenantId, accessId, sealed, of) : undefined;
  const keys = {
    credentials: open(access.sealed, 'credentials'),
    former: open(access.former, 'former'),
    next: open(access.next, 'next'),
  };
  const rows = await readPolicies(tx, tenantId, bucketIds);
  const policies = rows.filter(row => row.state !== 'gone').map(({ state: _, ...policy }) => policy);
  return { uid, name, desired, ...keys, formerHolds, policies };
}
