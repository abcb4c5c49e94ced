/** A bucket as Cloud Storage tells of it, and whose it is, by labels that it has from its first moment. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { GcsConfig } from '#backends/gcs/gcs-config';
import type { ApplianceIdentity, BucketInspection, BucketRef, BucketSpec } from '#backends/object-backend';
import { applianceTag } from '#backends/s3/bucket-tags';

export const bucketDocument = z.looseObject({
  name: z.string(),
  metageneration: z.string(),
  timeCreated: z.string(),
  labels: z.record(z.string(), z.string()).default({}),
  versioning: z.looseObject({ enabled: z.boolean() }).optional(),
  iamConfiguration: z
    .looseObject({
      uniformBucketLevelAccess: z.looseObject({ enabled: z.boolean() }).optional(),
      publicAccessPrevention: z.string().optional(),
    })
    .default({}),
});
export type GcsBucket = z.output<typeof bucketDocument>;

const APPLIANCE = 'trivet_appliance';
const INCARNATION = 'trivet_incarnation';
const SECONDS_A_DAY = 86_400;

/** Labels have no room for the whole of it: 63 lower-case letters, digits, dashes and underscores. */
export const ownerDigest = (identity: ApplianceIdentity): string =>
  createHash('sha256').update(applianceTag(identity)).digest('hex').slice(0, 24);

export const labelsOf = (digest: string, { incarnation }: BucketRef, { tags }: BucketSpec): Record<string, string> => ({
  ...tags,
  [APPLIANCE]: digest,
  [INCARNATION]: incarnation,
});

/** What is asked of every bucket of ours, made or mended: only IAM gives rights, and none to everybody. */
export const settings = (spec: BucketSpec) => ({
  iamConfiguration: { uniformBucketLevelAccess: { enabled: true }, publicAccessPrevention: 'enforced' },
  versioning: { enabled: spec.versioning },
});

export const newBucket = (config: GcsConfig, digest: string, bucket: BucketRef, spec: BucketSpec) => ({
  name: bucket.name,
  location: spec.region?.toUpperCase() ?? config.location,
  labels: labelsOf(digest, bucket, spec),
  ...settings(spec),
  ...(config.softDeleteDays === undefined
    ? {}
    : { softDeletePolicy: { retentionDurationSeconds: String(config.softDeleteDays * SECONDS_A_DAY) } }),
  ...(spec.kmsKey === undefined ? {} : { encryption: { defaultKmsKeyName: spec.kmsKey } }),
});

/** What of labels and settings is not as asked, as the body of a PATCH; undefined: nothing. A null takes a label away. */
export function mendingOf(found: GcsBucket, digest: string, bucket: BucketRef, spec: BucketSpec): object | undefined {
  const wanted = labelsOf(digest, bucket, spec);
  const names = new Set([...Object.keys(found.labels), ...Object.keys(wanted)]);
  const labels = [...names].flatMap(name =>
    found.labels[name] === wanted[name] ? [] : [[name, wanted[name] ?? null] as const],
  );
  const { uniformBucketLevelAccess, publicAccessPrevention } = found.iamConfiguration;
  const isSet =
    uniformBucketLevelAccess?.enabled === true &&
    publicAccessPrevention === 'enforced' &&
    (found.versioning?.enabled ?? false) === spec.versioning;
  if (isSet && labels.length === 0) return undefined;
  return { ...(isSet ? {} : settings(spec)), ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }) };
}

/** No other bucket of this name was made in the same millisecond. */
export const identityOf = ({ timeCreated }: GcsBucket): string => timeCreated;

export function inspectionOf(found: GcsBucket, digest: string): BucketInspection {
  const { [APPLIANCE]: appliance, [INCARNATION]: incarnation } = found.labels;
  if (appliance === digest && incarnation !== undefined) return { state: 'ours', incarnation };
  return { state: 'foreign', byTrivet: appliance !== undefined, identity: identityOf(found) };
}

export const isUnlabelled = ({ labels }: GcsBucket): boolean => labels[INCARNATION] === undefined;
