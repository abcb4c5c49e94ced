/**
 * Whose a bucket is. Garage has no tags of buckets: the mark is a local alias, a name that the bucket has for one key alone. Of
 * Trivet's own key it says which appliance and tenant made the bucket, and in which incarnation (invariant O1).
 */
import { createHash } from 'node:crypto';
import type { GarageBucket } from '#backends/garage/admin-api';
import type { ApplianceIdentity, BucketInspection } from '#backends/object-backend';
import { applianceTag } from '#backends/s3/bucket-tags';

const MARK = /^trivet-([0-9a-f]{12})-([0-9a-f-]{36})$/;

/** Twelve digits for the appliance and the tenant: a local alias has room for 63 characters. */
export const ownerDigest = (identity: ApplianceIdentity): string =>
  createHash('sha256').update(applianceTag(identity)).digest('hex').slice(0, 12);

export const markOf = (digest: string, incarnation: string): string => `trivet-${digest}-${incarnation}`;

export function inspectionOf(bucket: GarageBucket | undefined, digest: string, ownKey: string): BucketInspection {
  if (!bucket) return { state: 'absent' };
  const marks = bucket.keys
    .filter(({ accessKeyId }) => accessKeyId === ownKey)
    .flatMap(({ bucketLocalAliases }) => bucketLocalAliases.map(alias => MARK.exec(alias) ?? []));
  const ours = marks.find(([, owner]) => owner === digest);
  if (ours) return { state: 'ours', incarnation: ours[2]! };
  const byTrivet = marks.some(([alias]) => alias !== undefined);
  // Garage writes the name before the mark: one that nobody may use can be what it left when it died in between.
  if (!byTrivet && bucket.keys.length === 0)
    return { state: 'untagged', empty: bucket.objects === 0 && bucket.unfinishedUploads === 0, identity: bucket.id };
  return { state: 'foreign', byTrivet, identity: bucket.id };
}
