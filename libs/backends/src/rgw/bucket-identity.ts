/**
 * Whose a bucket is (invariant O1): its owner as Admin Ops says it, which may have no key that we could ask with; appliance
 * and incarnation by the bucket's tags.
 */
import type { BucketInspection, BucketRef } from '#backends/object-backend';
import type { AdminOps, RgwBucket } from '#backends/rgw/admin-ops';
import type { BucketOwners } from '#backends/rgw/bucket-owners';
import { qualifiedBucket } from '#backends/rgw/rgw-config';
import { isBucketEmpty } from '#backends/s3/bucket-purge';
import { APPLIANCE_TAG, INCARNATION_TAG } from '#backends/s3/bucket-tags';
import { estranged, readTags } from '#backends/s3/ownership';

export interface FoundBucket {
  inspection: BucketInspection;
  bucket?: RgwBucket;
}

export class BucketIdentity {
  constructor(
    private readonly rgwTenant: string,
    private readonly admin: AdminOps,
    private readonly owners: BucketOwners,
    private readonly appliance: string,
  ) {}

  async find(name: string, signal: AbortSignal): Promise<FoundBucket> {
    const bucket = await this.admin.getBucket(qualifiedBucket(this.rgwTenant, name), signal);
    if (!bucket) return { inspection: { state: 'absent' } };
    const { marker: identity } = bucket;
    const foreign = (byTrivet: boolean): FoundBucket => ({
      inspection: { state: 'foreign', byTrivet, identity },
      bucket,
    });
    if (bucket.owner !== this.owners.ours) return foreign(bucket.tagset?.[APPLIANCE_TAG] !== undefined);
    return this.owners.as(bucket.owner, signal, async owner => {
      const tags = await readTags(owner, name, signal);
      const appliance = tags.get(APPLIANCE_TAG);
      const incarnation = tags.get(INCARNATION_TAG);
      if (appliance === undefined || incarnation === undefined)
        return {
          inspection: { state: 'untagged', empty: await isBucketEmpty(owner, name, signal), identity },
          bucket,
        };
      if (appliance !== this.appliance) return foreign(true);
      return { inspection: { state: 'ours', incarnation }, bucket };
    });
  }

  /**
   * Undefined when this bucket is gone, whatever has its name now. A bucket that is still there, but was given away or
   * lost its tags, must not pass for gone: a revocation would leave its statements in force.
   */
  async findForGrants(ref: BucketRef, signal: AbortSignal): Promise<RgwBucket | undefined> {
    const found = await this.find(ref.name, signal);
    if (isThis(found, ref)) return found.bucket;
    if (found.inspection.state === 'untagged') throw estranged(ref.name, 'lost the tags that say so');
    if (found.inspection.state !== 'foreign') return undefined;
    const { owner } = found.bucket!;
    const tags = await this.owners.as(owner, signal, owner => readTags(owner, ref.name, signal));
    if (tags.get(APPLIANCE_TAG) === this.appliance && tags.get(INCARNATION_TAG) === ref.incarnation)
      throw estranged(ref.name, `was given to user ${owner}`);
    return undefined;
  }
}

export function isThis({ inspection }: FoundBucket, { incarnation }: BucketRef): boolean {
  return inspection.state === 'ours' && inspection.incarnation === incarnation;
}
