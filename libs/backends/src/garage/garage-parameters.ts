import type { BucketSpec } from '#backends/object-backend';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { invalid } from '#platform/errors';

/** What RGW's classes may ask for, and Garage has not. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  versioning: 'Garage keeps no versions',
  objectLock: 'Garage has no object lock',
  tags: 'Garage has no tags of buckets',
  placement: 'the layout of the cluster decides it',
};
/** The admin API takes quotas as numbers of JSON. */
const MOST = BigInt(Number.MAX_SAFE_INTEGER);

export function parseGarageBucketParameters(parameters: Readonly<Record<string, string>>): BucketSpec {
  for (const [key, why] of Object.entries(ELSEWHERE))
    if (key in parameters) throw invalid(`parameters[${key}]`, `not possible on Garage: ${why}`);
  const spec = parseS3BucketParameters(parameters, [], Object.keys(ELSEWHERE));
  for (const key of ['quotaMaxSize', 'quotaMaxObjects'] as const)
    if (BigInt(spec[key] ?? 0) > MOST) throw invalid(`parameters[${key}]`, `at most ${MOST} on Garage`);
  return spec;
}
