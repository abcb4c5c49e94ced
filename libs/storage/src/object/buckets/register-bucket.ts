import { type ObjectBackendKind, ReplacedBucket } from '#backends/object-backend';
import { objectBackendKinds } from '#backends/registry';
import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { requireTaking } from '#storage/shared/backend-state';
import { desiredBucket, fingerprint } from '#storage/shared/desired-state';
import { COSI_ENDPOINT_NAME } from '#tenancy/setup/setup';

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

const PLACES = sql(
  'bucket_places',
  `SELECT b.tenant_id AS "tenantId", b.id AS "backendId", b.name, b.kind AS "backendKind", e.name IS NOT NULL AS "isDoors"
     FROM trivet.backend b
     LEFT JOIN trivet.endpoint e ON e.tenant_id = b.tenant_id AND e.backend_id = b.id AND e.name = $2
    WHERE b.tenant_id = $1 ORDER BY b.name`,
);

/** What stores have ever taken as a name, beyond what new ones may have. A separator of tenants is none of it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;

export interface BackendPlace {
  tenantId: string;
  backendId: string;
}

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

interface Place extends BackendPlace {
  name: string;
  backendKind: string;
  /** COSI_ENDPOINT gives buckets from it. */
  isDoors: boolean;
}

/** Where a tenant's bucket is: at the named backend; else at that of COSI_ENDPOINT, or at the only one that the tenant has. */
export async function placeOfBuckets(
  database: Database,
  tenant: { id: string; name: string },
  backend: string | undefined,
): Promise<BackendPlace & { kind: ObjectBackendKind }> {
  const all = await database.withTenant(tenant.id, tx => tx.query<Place>(PLACES, [tenant.id, COSI_ENDPOINT_NAME]));
  const places = all.flatMap(({ backendKind, ...place }) => {
    const kind = objectBackendKinds().find(known => known.kind === backendKind);
    return kind ? [{ ...place, kind }] : [];
  });
  if (places.length === 0) throw new StorageError('not_found', `tenant ${tenant.name} has no backend of buckets`);
  const usual = places.find(({ isDoors }) => isDoors) ?? (places.length === 1 ? places[0] : undefined);
  const chosen = backend === undefined ? usual : places.find(({ name }) => name === backend);
  if (chosen) return chosen;
  const names = places.map(({ name }) => name).join(', ');
  throw invalid('backend', `tenant ${tenant.name} has the backends ${names}: name one`);
}
