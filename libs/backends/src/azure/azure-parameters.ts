import type { BucketSpec } from '#backends/object-backend';
import { parseTags } from '#backends/s3/bucket-tags';
import { invalid } from '#platform/errors';

/** Metadata of a container travels in headers, whose names are those of variables and are compared without case. */
const METADATA_NAME = /^[a-z_][a-z0-9_]{0,127}$/;
const NOT_IN_HEADER = /[^\x20-\x7e]/;
const MAX_METADATA_BYTES = 6_000;

/** What S3's classes may ask for, and a container cannot have: the account has it, or nobody. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  versioning: 'the storage account decides it for all containers',
  objectLock: 'immutability policies are set on the container by its administrator',
  quotaMaxSize: 'Azure has no quota of a container',
  quotaMaxObjects: 'Azure has no quota of a container',
  region: 'the storage account decides it',
  placement: 'the storage account decides it',
};

/**
 * Class parameters of a container as its canonical desired state. Strict: an unknown key or a malformed value is
 * `invalid_argument` with field `parameters[key]`.
 */
export function parseContainerParameters(parameters: Readonly<Record<string, string>>): BucketSpec {
  const spec: BucketSpec = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' };
  for (const [key, value] of Object.entries(parameters)) {
    const field = `parameters[${key}]`;
    if (key === 'tags') spec.tags = metadataOf(parseTags(value, field), field);
    else if (key === 'deletePolicy') {
      if (value !== 'retain' && value !== 'purge') throw invalid(field, `expected retain or purge, got '${value}'`);
      spec.deletePolicy = value;
    } else if (Object.hasOwn(ELSEWHERE, key)) throw invalid(field, `not possible on Azure: ${ELSEWHERE[key]}`);
    else throw invalid(field, 'unknown parameter; known are tags, deletePolicy');
  }
  return spec;
}

function metadataOf(tags: Record<string, string>, field: string): Record<string, string> {
  for (const [key, value] of Object.entries(tags)) {
    if (!METADATA_NAME.test(key))
      throw invalid(field, `tag '${key}' becomes metadata: lower-case letters, digits and underscores, no digit first`);
    if (value === '' || NOT_IN_HEADER.test(value)) throw invalid(field, `tag '${key}' needs a value of plain ASCII`);
  }
  const bytes = JSON.stringify(tags).length;
  if (bytes > MAX_METADATA_BYTES) throw invalid(field, `the tags take ${bytes} bytes of ${MAX_METADATA_BYTES}`);
  return tags;
}
