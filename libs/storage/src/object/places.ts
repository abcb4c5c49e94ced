import type { ObjectBackendKind } from '#backends/object-backend';
import { objectBackendKinds } from '#backends/registry';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import type { ObjectPlace } from '#storage/object/endpoint';
import { COSI_ENDPOINT_NAME } from '#tenancy/setup/setup';

const PLACES = sql(
  'bucket_places',
  `SELECT b.tenant_id AS "tenantId", b.id AS "backendId", b.name, b.kind AS "backendKind", b.config,
          e.name IS NOT NULL AS "isDoors"
     FROM trivet.backend b
     LEFT JOIN trivet.endpoint e ON e.tenant_id = b.tenant_id AND e.backend_id = b.id AND e.name = $2
    WHERE b.tenant_id = $1 ORDER BY b.name`,
);

interface Row {
  tenantId: string;
  backendId: string;
  name: string;
  backendKind: string;
  config: unknown;
  /** COSI_ENDPOINT gives buckets from it. */
  isDoors: boolean;
}

/** A backend of a tenant that keeps buckets. */
export interface BucketPlace extends ObjectPlace {
  kind: ObjectBackendKind;
}

/** Where a tenant's bucket is: at the named backend; else at that of COSI_ENDPOINT, or at the only one that the tenant has. */
export async function placeOfBuckets(
  database: Database,
  tenant: { id: string; name: string },
  backend: string | undefined,
): Promise<BucketPlace> {
  const places = await placesOf(database, tenant.id);
  if (places.length === 0) throw new StorageError('not_found', `tenant ${tenant.name} has no backend of buckets`);
  const usual = places.find(({ isDoors }) => isDoors) ?? (places.length === 1 ? places[0] : undefined);
  const chosen = backend === undefined ? usual : places.find(({ name }) => name === backend);
  if (chosen) return opened(chosen);
  const names = places.map(({ name }) => name).join(', ');
  throw invalid('backend', `tenant ${tenant.name} has the backends ${names}: name one`);
}

/** Of a backend by its id, which keeps buckets. */
export async function placeOfBackend(database: Database, tenantId: string, backendId: string): Promise<BucketPlace> {
  const found = (await placesOf(database, tenantId)).find(place => place.backendId === backendId);
  if (!found) throw new StorageError('internal', `backend ${backendId} keeps no buckets here`, { retry: 'person' });
  return opened(found);
}

type Known = Row & { kind: ObjectBackendKind };

async function placesOf(database: Database, tenantId: string): Promise<Known[]> {
  const rows = await database.withTenant(tenantId, tx => tx.query<Row>(PLACES, [tenantId, COSI_ENDPOINT_NAME]));
  return rows.flatMap(row => {
    const kind = objectBackendKinds().find(known => known.kind === row.backendKind);
    return kind ? [{ ...row, kind }] : [];
  });
}

const opened = ({ tenantId, backendId, backendKind, config, kind }: Known): BucketPlace => ({
  tenantId,
  backendId,
  backendKind,
  kind,
  accessPoint: kind.accessPoint(kind.parseConfig(config)),
});

/** What a store calls a principal without a key, by the backend's row; undefined: the backend lets none in any more. */
export function nameAtStore(backendKind: string, config: unknown, accountId: string): string | undefined {
  const kind = objectBackendKinds().find(known => known.kind === backendKind);
  return kind?.accessPoint(kind.parseConfig(config)).serviceAccounts?.nameOf(accountId);
}
