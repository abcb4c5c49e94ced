import type { BucketSpec } from '#backends/object-backend';
import { makeBucket } from '#backends/s3/bucket-making';
import { errorCode } from '#backends/s3/errors';
import type { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/** Alone: BlockPublicAcls would refuse ordinary uploads that carry an ACL (invariant O3). */
export const PUBLIC_ACCESS = { IgnorePublicAcls: true };

/** `configured`: the backend's placement target, where the bucket names none. One that the owner has already stays as it is. */
export async function makePlacedBucket(
  owner: S3User,
  name: string,
  spec: BucketSpec,
  configured: string | undefined,
  signal: LeaseSignal,
): Promise<void> {
  try {
    await makeBucket(owner, name, spec, locationOf(spec, configured), signal);
  } catch (error) {
    if (errorCode(error) === 'BucketAlreadyOwnedByYou') return;
    if (errorCode(error) !== 'InvalidLocationConstraint') throw error;
    throw noLocation(name, spec, configured, error);
  }
}

/** RGW reads `zonegroup:placement`; either may be left out. */
function locationOf(spec: BucketSpec, placement: string | undefined): string | undefined {
  const target = spec.placement ?? placement;
  if (spec.region === undefined && target === undefined) return undefined;
  return target === undefined ? spec.region! : `${spec.region ?? ''}:${target}`;
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
