import type { AccessMode } from '#backends/object-backend';
import type { AccessedBucket } from '#cosi/v1alpha2-messages';
import { invalid } from '#platform/errors';
import type { Endpoint } from '#storage/object/endpoint';

/**
 * Access modes of v1alpha2. Revision R3 renumbered the enum and split the mode in three, inside the same package, so
 * the numbers must be told apart by the request: R3 sends fields 3 and 4 of every AccessedBucket, R1 and R2 know only
 * field 2. `endpoint.accessModeNumbers` decides where a caller follows neither.
 */
type Numbers = 'r1' | 'r3';

const R1: readonly (AccessMode | 'unknown')[] = ['unknown', 'read_write', 'read_only', 'write_only'];
const R3: readonly (AccessMode | 'unknown' | 'any')[] = ['unknown', 'any', 'read_write', 'read_only', 'write_only'];

const hasR3Fields = (bucket: AccessedBucket): boolean =>
  bucket.objectMetadataAccessMode !== null || bucket.bucketMetadataAccessMode !== null;

/** The mode of each bucket of one Grant request, in its order. Throws `invalid_argument` naming the field. */
export function decodeAccessModes(
  buckets: readonly AccessedBucket[],
  setting: Endpoint['accessModeNumbers'],
): AccessMode[] {
  const split = buckets.some(hasR3Fields);
  if (split && setting === 'r1') {
    throw invalid(
      'buckets.object_metadata_access_mode',
      'this endpoint is set to the access mode numbers of the first revision, which has no such field',
    );
  }
  const numbers: Numbers = split || setting === 'r3' ? 'r3' : 'r1';
  return buckets.map((bucket, index) => {
    const field = (name: string) => `buckets[${index}].${name}`;
    if (!split) return dataMode(bucket.accessMode, numbers, field('access_mode'));
    const data = dataMode(bucket.accessMode, numbers, field('object_data_access_mode'));
    checkObjectMetadata(bucket.objectMetadataAccessMode, data, field('object_metadata_access_mode'));
    checkBucketMetadata(bucket.bucketMetadataAccessMode, data, field('bucket_metadata_access_mode'));
    return data;
  });
}

type Wrapper = AccessedBucket['accessMode'];

function dataMode(wrapper: Wrapper, numbers: Numbers, field: string): AccessMode {
  const mode = lookUp(wrapper, numbers === 'r1' ? R1 : R3, field);
  // The driver may choose, and least privilege is recommended.
  return mode === 'any' ? 'read_only' : mode;
}

function lookUp<T extends string>(wrapper: Wrapper, names: readonly (T | 'unknown')[], field: string): T {
  const number = wrapper?.mode ?? 0;
  const name = names[number];
  if (name === undefined) throw invalid(field, `unknown access mode number ${number}`);
  if (name === 'unknown') throw invalid(field, 'required, must not be UNKNOWN');
  return name as T;
}

/** An S3 policy cannot give the metadata of an object another mode than its data. */
function checkObjectMetadata(wrapper: Wrapper, data: AccessMode, field: string): void {
  const mode = lookUp(wrapper, R3, field);
  if (mode !== 'any' && mode !== data) {
    throw invalid(field, `${mode.toUpperCase()} is not supported here, use ANY or ${data.toUpperCase()}`);
  }
}

/** Reading means listing the bucket, which comes with every mode except WRITE_ONLY; nobody may change a bucket. */
function checkBucketMetadata(wrapper: Wrapper, data: AccessMode, field: string): void {
  const mode = lookUp(wrapper, R3, field);
  if (mode === 'any' || (mode === 'read_only' && data !== 'write_only')) return;
  const allowed = data === 'write_only' ? 'ANY' : 'ANY or READ_ONLY';
  throw invalid(field, `${mode.toUpperCase()} is not supported with object data ${data.toUpperCase()}, use ${allowed}`);
}
