import { type ObjectBackendKind, ReplacedBucket } from '#backends/object-backend';
import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { ObjectPlace } from '#storage/object/endpoint';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { requireTaking } from '#storage/shared/backend-state';
import { desiredBucket, fingerprint } from '#storage/shared/desired-state';

const INSERT = sql(
  'bucket_register',
  `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, identity)
   VALUES ($1, $2, $3, $4, 'registered', 'ready', $5, $6, $7)
   ON CONFLICT (tenant_id, backend_id, name) WHERE state <> 'gone' DO NOTHING
   RETURNING id`,
);
/** One that was registered before identities were kept takes the one that its name has now. */
const KNOWN = sql(
  'bucket_known',
  `WITH known AS (
     SELECT id, origin, identity FROM trivet.bucket
      WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 AND state <> 'gone'
   ), seen AS (
     UPDATE trivet.bucket b SET identity = $4 FROM known
      WHERE b.tenant_id = $1 AND b.id = known.id AND known.origin = 'registered' AND b.identity IS NULL
   )
   SELECT id, origin, coalesce(identity, $4) AS identity FROM known`,
);

/** What stores have ever taken as a name, beyond what new ones may have. A separator of tenants is none of it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;

export type BackendPlace = Pick<ObjectPlace, 'tenantId' | 'backendId'>;

/**
 * Gives a tenant the use of a bucket that Trivet did not make (brownfield). An administrator's act: any typed name that
 * worked would be a way out of the tenant (invariant O7). The bucket is never deleted, emptied or reconfigured.
 * Registering it again is not an error.
 */
export async function registerBucket(
  database: Database,
  backends: BackendDirectory,
  kind: ObjectBackendKind,
  { tenantId, backendId }: BackendPlace,
  name: string,
  observer?: ChangeObserver,
): Promise<{ id: string; outcome: 'registered' | 'known' }> {
  if (!NAME.test(name)) throw invalid('name', 'expected 2 to 255 letters, digits, dots, dashes and underscores');
  const resource = `bucket ${name}`;
  const backend = await backends.open(tenantId, backendId);
  const found = await backend.inspectBucket(name, AbortSignal.timeout(10_000));
  if (found.state === 'absent')
    throw new StorageError('not_found', `${resource} does not exist at the backend`, { resource });
  if (found.state === 'ours')
    throw new StorageError('already_exists', `${resource} was made by this appliance; it needs no registration`, {
      resource,
    });
  if (found.state === 'foreign' && found.byTrivet)
    throw new StorageError(
      'already_exists',
      `${resource} was made by Trivet for another tenant or appliance, and is not to be shared with this one; if that is no more, take the bucket's tags that begin with 'trivet' off first`,
      { resource },
    );
  const desired = desiredBucket(kind.protocols, kind.parseBucketParameters({}));
  return database.withTenant(tenantId, async tx => {
    await requireTaking(tx, { tenantId, backendId });
    const place = [tenantId, backendId, name];
    const id = uuidv7();
    const inserted = await tx.query(INSERT, [
      tenantId,
      id,
      backendId,
      name,
      JSON.stringify(desired),
      fingerprint(desired),
      found.identity,
    ]);
    if (inserted.length > 0) {
      await tx.commit(...noting(observer, { kind: 'bucket.register', resourceId: id, resourceName: name }));
      return { id, outcome: 'registered' };
    }
    const [row] = await tx.query<{ id: string; origin: string; identity: string | null }>(KNOWN, [
      ...place,
      found.identity,
    ]);
    if (row?.origin === 'registered') {
      // Accesses that were granted on the one that is gone must not come to hold for this one.
      if (row.identity !== (found.identity ?? null)) throw new ReplacedBucket(name);
      return { id: row.id, outcome: 'known' };
    }
    throw new StorageError('already_exists', `${resource} is being made or deleted by this appliance`, { resource });
  });
}
