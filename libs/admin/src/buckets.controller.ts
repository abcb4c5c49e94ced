import { Controller, Inject } from '@nestjs/common';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { Change, notFound } from '#admin/change';
import { bucketRoutes } from '#admin/contract/buckets';
import { answerPage } from '#admin/paging';
import type { Resources } from '#admin/resources';
import { Serves } from '#admin/serves';
import type { BucketSpec } from '#backends/object-backend';
import type { Tx } from '#platform/database';
import { type ListedBucket, listBuckets, readBucket } from '#storage/buckets/bucket-list';
import { lockRow } from '#storage/lock-row';

@Controller()
export class BucketsController {
  private readonly resources: Resources;

  constructor(@Inject(ADMIN_OPTIONS) { resources }: AdminOptions) {
    this.resources = resources;
  }

  @Serves(bucketRoutes.list)
  list(@Call() call: AdminCall<typeof bucketRoutes.list>) {
    const { condition, ...filter } = call.query;
    const wanted = { ...filter, ...(condition === undefined ? {} : { condition: condition === 'true' }) };
    return answerPage(call, page => listBuckets(this.resources.database, call.tenant.id, wanted, page), shown);
  }

  @Serves(bucketRoutes.get)
  async get(@Call() call: AdminCall<typeof bucketRoutes.get>) {
    const row = await this.read(call, call.params.bucket);
    call.giveEtag(row);
    return shown(row);
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
    await change.carryOut(caller, () => this.resources.objectStorage.removeBucket(caller, bucket.name, bucket.id));
  }

  private async read(call: AdminCall, id: string): Promise<ListedBucket> {
    const { id: tenantId } = call.tenant;
    const row = await this.resources.database.withTenant(tenantId, tx => readBucket(tx, tenantId, id));
    if (!row) throw notFound(call);
    return row;
  }
}

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
