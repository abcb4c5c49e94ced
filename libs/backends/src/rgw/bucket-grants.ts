/**
 * Writes our statements into a bucket's policy.
 *
 * RGW has no compare-and-swap on a policy, and a write of somebody else between our read and our write would be lost
 * without a trace. The version of the bucket's metadata shows it: it grows by one with each change, so it must have
 * grown by just ours. Else the operation stops for a person to look, since what was lost cannot be known (O5).
 */
import { DeleteBucketPolicyCommand, GetBucketPolicyCommand, PutBucketPolicyCommand } from '@aws-sdk/client-s3';
import type { Grant } from '#backends/object-backend';
import { mergePolicy, type PolicyScope, samePolicy } from '#backends/s3/bucket-policy';
import { errorCode } from '#backends/s3/errors';
import type { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * RGW refuses a policy above its bound on parameters of 1 MiB with 416 InvalidRange, but parses the policy at each
 * request for the bucket: 15 ms at this size, 43 ms at 1 MiB (16.2.15).
 */
export const MAX_POLICY_BYTES = 360 * 1024;

/** Of the bucket's metadata; undefined when the bucket is gone. */
export type ReadVersion = () => Promise<{ tag: string; ver: number } | undefined>;

export async function writeGrants(
  owner: S3User,
  scope: PolicyScope,
  grants: readonly Grant[],
  readVersion: ReadVersion,
  signal: LeaseSignal,
): Promise<void> {
  const before = await readVersion();
  const current = await readPolicy(owner, scope.bucket, signal);
  const wanted = mergePolicy(current, scope, grants);
  if (samePolicy(current, wanted)) return;
  const bytes = Buffer.byteLength(wanted ?? '');
  // What makes it smaller must be possible even when others made it too large.
  if (bytes > MAX_POLICY_BYTES && bytes > Buffer.byteLength(current ?? ''))
    throw new StorageError(
      'resource_exhausted',
      `the policy of bucket ${scope.bucket} would have ${bytes} bytes; at most ${MAX_POLICY_BYTES} are possible`,
      { resource: `bucket ${scope.bucket}` },
    );
  if (wanted === undefined) await owner.change(new DeleteBucketPolicyCommand({ Bucket: scope.bucket }), signal);
  else await owner.change(new PutBucketPolicyCommand({ Bucket: scope.bucket, Policy: wanted }), signal);
  const after = await readVersion();
  if (before && after && after.tag === before.tag && after.ver === before.ver + 1) return;
  throw new StorageError(
    'failed_precondition',
    `somebody else changed bucket ${scope.bucket} while its policy was written; check that the statements which are not Trivet's are still as intended, then retry`,
    { resource: `bucket ${scope.bucket}` },
  );
}

export async function readPolicy(user: S3User, bucket: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { Policy } = await user.read(new GetBucketPolicyCommand({ Bucket: bucket }), signal);
    return Policy === undefined || Policy === '' ? undefined : Policy;
  } catch (error) {
    if (errorCode(error) === 'NoSuchBucketPolicy') return undefined;
    throw error;
  }
}
