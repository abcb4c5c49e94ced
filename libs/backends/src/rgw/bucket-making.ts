/** How a bucket is made and set up, as its owner. */
import {
  type BucketLocationConstraint,
  CreateBucketCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import type { BucketRef, BucketSpec } from '#backends/object-backend';
import { errorCode } from '#backends/rgw/errors';
import type { S3User } from '#backends/rgw/s3-user';
import { APPLIANCE_TAG, INCARNATION_TAG } from '#backends/s3/bucket-tags';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** `configured`: the backend's placement target, where the bucket names none. One that the owner has already stays as it is. */
export async function makeBucket(
  owner: S3User,
  name: string,
  spec: BucketSpec,
  configured: string | undefined,
  signal: LeaseSignal,
): Promise<void> {
  const location = locationOf(spec, configured);
  const command = new CreateBucketCommand({
    Bucket: name,
    ObjectLockEnabledForBucket: spec.objectLock ? true : undefined,
    ...(location === undefined ? {} : { CreateBucketConfiguration: { LocationConstraint: location } }),
  });
  try {
    await owner.change(command, signal);
  } catch (error) {
    if (errorCode(error) === 'BucketAlreadyOwnedByYou') return;
    if (errorCode(error) !== 'InvalidLocationConstraint') throw error;
    throw noLocation(name, spec, configured, error);
  }
}

export async function setUpBucket(
  owner: S3User,
  appliance: string,
  bucket: BucketRef,
  spec: BucketSpec,
  signal: LeaseSignal,
): Promise<void> {
  const Bucket = bucket.name;
  // Ownership first: what follows may be interrupted, and is repeated then.
  const tags = { ...spec.tags, [APPLIANCE_TAG]: appliance, [INCARNATION_TAG]: bucket.incarnation };
  const TagSet = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  await owner.change(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet } }), signal);
  // Alone: BlockPublicAcls would refuse ordinary uploads that carry an ACL (invariant O3).
  const PublicAccessBlockConfiguration = { IgnorePublicAcls: true };
  await owner.change(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }), signal);
  if (!spec.versioning) return;
  const VersioningConfiguration = { Status: 'Enabled' } as const;
  await owner.change(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }), signal);
}

/** RGW reads `zonegroup:placement`; either may be left out. */
function locationOf(spec: BucketSpec, placement: string | undefined): BucketLocationConstraint | undefined {
  const target = spec.placement ?? placement;
  if (spec.region === undefined && target === undefined) return undefined;
  const text = target === undefined ? spec.region! : `${spec.region ?? ''}:${target}`;
  return text as BucketLocationConstraint;
}

function noLocation(name: string, spec: BucketSpec, configured: string | undefined, cause: unknown): StorageError {
  const resource = `bucket ${name}`;
  const { region, placement } = spec;
  // Sidecars give up on what the request cannot help.
  if (region === undefined && placement === undefined) {
    const message = `the object store has no placement target '${configured}', which this backend is configured with`;
    return new StorageError('failed_precondition', message, { resource, cause });
  }
  const field = placement === undefined ? 'parameters[region]' : 'parameters[placement]';
  const zoneGroup = region === undefined ? '' : `zone group '${region}'`;
  const target = placement === undefined ? '' : `placement target '${placement}'`;
  const what = [target, zoneGroup].filter(part => part !== '').join(' in ');
  return new StorageError('invalid_argument', `${field}: the object store has no ${what}`, { field, resource, cause });
}
