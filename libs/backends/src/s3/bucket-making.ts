/** How a bucket is made and set up, as its owner. */
import {
  type BucketLocationConstraint,
  CreateBucketCommand,
  type PublicAccessBlockConfiguration,
  PutBucketEncryptionCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import type { BucketRef, BucketSpec } from '#backends/object-backend';
import { APPLIANCE_TAG, INCARNATION_TAG } from '#backends/s3/bucket-tags';
import type { S3User } from '#backends/s3/s3-user';
import type { LeaseSignal } from '#platform/lease-signal';

/** One that the owner has already stays as it is, and may be answered by BucketAlreadyOwnedByYou. */
export async function makeBucket(
  owner: S3User,
  name: string,
  { objectLock }: BucketSpec,
  location: string | undefined,
  signal: LeaseSignal,
): Promise<void> {
  const command = new CreateBucketCommand({
    Bucket: name,
    ObjectLockEnabledForBucket: objectLock ? true : undefined,
    ...(location === undefined
      ? {}
      : { CreateBucketConfiguration: { LocationConstraint: location as BucketLocationConstraint } }),
  });
  await owner.change(command, signal);
}

export async function setUpBucket(
  owner: S3User,
  appliance: string,
  bucket: BucketRef,
  spec: BucketSpec,
  publicAccess: PublicAccessBlockConfiguration,
  signal: LeaseSignal,
): Promise<void> {
  const Bucket = bucket.name;
  // Ownership first: what follows may be interrupted, and is repeated then.
  const tags = { ...spec.tags, [APPLIANCE_TAG]: appliance, [INCARNATION_TAG]: bucket.incarnation };
  const TagSet = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  await owner.change(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet } }), signal);
  const PublicAccessBlockConfiguration = publicAccess;
  await owner.change(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }), signal);
  if (spec.encryption !== undefined) {
    const [SSEAlgorithm, KMSMasterKeyID] =
      spec.encryption === 'SSE-S3' ? (['AES256', undefined] as const) : (['aws:kms', spec.kmsKey] as const);
    const Rules = [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm, KMSMasterKeyID } }];
    await owner.change(
      new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration: { Rules } }),
      signal,
    );
  }
  if (!spec.versioning) return;
  const VersioningConfiguration = { Status: 'Enabled' } as const;
  await owner.change(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }), signal);
}
