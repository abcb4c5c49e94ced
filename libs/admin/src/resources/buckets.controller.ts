import { Controller, Inject } from '@nestjs/common';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { bucketRoutes } from '#admin/contract/buckets';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change, notFound } from '#admin/requests/change';
import { OfAllTenants } from '#admin/requests/of-all-tenants';
import { answerPage } from '#admin/requests/paging';
import { Serves } from '#admin/requests/serves';
import type { BucketSpec } from '#backends/object-backend';
import { Database, type Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { type ListedBucket, listBuckets, readBucket } from '#storage/object/buckets/bucket-list';
import { registerBucket } from '#storage/object/buckets/register-bucket';
import { OBJECT_STORAGE } from '#storage/object/object.module';
import type { ObjectStorage } from '#storage/object/object-storage';
import { placeOfBuckets } from '#storage/object/places';
import { OBJECT_BACKENDS } from '#storage/shared/backend-directories.module';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { lockRow } from '#storage/shared/lock-row';

const FIELDS = { name: 'name', backend: 'backend' };

@Controller()
export class BucketsController {
  constructor(
    private readonly database: Database,
    @Inject(OBJECT_STORAGE) private readonly objectStorage: ObjectStorage,
    @Inject(OBJECT_BACKENDS) private readonly backends: BackendDirectory,
    private readonly ofAllTenants: OfAllTenants,
  ) {}

  @Serves(bucketRoutes.list)
  list(@Call() call: AdminCall<typeof bucketRoutes.list>) {
    return answerPage(call, page => listBuckets(this.database, call.tenant.id, wantedOf(call.query), page), shown);
  }

  @Serves(allTenantsRoutes.buckets)
  listAll(@Call() call: AdminCall<typeof allTenantsRoutes.buckets>) {
    const wanted = wantedOf(call.query);
    return this.ofAllTenants.answer(call, (tenant, page) => listBuckets(this.database, tenant, wanted, page), shown);
  }

  @Serves(bucketRoutes.create)
  async create(@Call() call: AdminCall<typeof bucketRoutes.create>) {
    const { name, backend, parameters } = call.body;
    const change = new Change(call, { action: 'bucket.create', after: call.body, fields: FIELDS });
    await change.carryOut(async () => {
      const place = await placeOfBuckets(this.database, call.tenant, backend);
      const caller = { ...change.caller(place), place };
      return this.objectStorage.buckets.make(caller, { name, protocols: [], parameters });
    });
    // Drivers find what is there; a person who makes one is told that it was there.
    const { id: tenantId } = call.tenant;
    const id = change.noted?.resourceId;
    const made = id && (await this.database.withTenant(tenantId, tx => readBucket(tx, tenantId, id)));
    if (!made) throw new StorageError('already_exists', `there is a bucket ${name} already`, { field: 'name' });
    if (made.state !== 'creating') call.giveLocation(`/tenants/${call.tenant.name}/buckets/${made.id}`);
    call.giveEtag(made);
    return shown(made);
  }

  @Serves(bucketRoutes.register)
  async register(@Call() call: AdminCall<typeof bucketRoutes.register>) {
    const { database, backends } = this;
    const { name, backend } = call.body;
    const change = new Change(call, { action: 'bucket.register', after: call.body, fields: FIELDS });
    let id = '';
    await change.carryOut(async () => {
      const { kind, ...place } = await placeOfBuckets(database, call.tenant, backend);
      ({ id } = await registerBucket(database, backends, kind, place, name, change));
    });
    call.giveLocation(`/tenants/${call.tenant.name}/buckets/${id}`);
    return this.answer(call, id);
  }

  @Serves(bucketRoutes.get)
  get(@Call() call: AdminCall<typeof bucketRoutes.get>) {
    return this.answer(call, call.params.bucket);
  }

  @Serves(bucketRoutes.delete)
  async delete(@Call() call: AdminCall<typeof bucketRoutes.delete>): Promise<void> {
    const { id: tenantId } = call.tenant;
    const bucket = await this.read(call, call.params.bucket);
    const read = async (tx: Tx) => {
      await lockRow(tx, 'bucket', tenantId, bucket.id);
      const row = await readBucket(tx, tenantId, bucket.id);
      // By the time of its row: what its accesses write into it is the deletePolicy's matter.
      return row && { ...row, view: shown(row) };
    };
    const action = bucket.origin === 'registered' ? 'bucket.release' : 'bucket.delete';
    const change = new Change(call, { action, read, joins: true });
    const caller = change.caller(bucket);
    await change.carryOut(() =>
      this.objectStorage.buckets.remove(caller, bucket.name, { incarnation: bucket.id, forget: true }),
    );
  }

  private async answer(call: AdminCall, id: string) {
    const row = await this.read(call, id);
    call.giveEtag(row);
    return shown(row);
  }

  private async read(call: AdminCall, id: string): Promise<ListedBucket> {
    const { id: tenantId } = call.tenant;
    const row = await this.database.withTenant(tenantId, tx => readBucket(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }
}

const wantedOf = ({ condition, ...filter }: AdminCall<typeof bucketRoutes.list>['query']) => ({
  ...filter,
  ...(condition === undefined ? {} : { condition: condition === 'true' }),
});

const shown = (row: ListedBucket) => ({
  id: row.id,
  name: row.name,
  backend: row.backend,
  origin: row.origin,
  state: row.state,
  parameters: parametersOf(row.desired.spec),
  accesses: row.accesses,
  usedBytes: row.usedBytes,
  condition: row.condition,
  operation: row.activeOperation,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});

/** As a bucket class writes them. */
function parametersOf({ tags = {}, ...spec }: Partial<BucketSpec> = {}): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [key, value] of Object.entries(spec)) if (value !== undefined) shown[key] = String(value);
  const pairs = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  return pairs.length > 0 ? { ...shown, tags: pairs.join(',') } : shown;
}
