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

export function parseGarageBucketParameters(parameters: Readonly<Record<string, string>>): BucketSpec {
  for (const [key, why] of Object.entries(ELSEWHERE))
    if (key in parameters) throw invalid(`parameters[${key}]`, `not possible on Garage: ${why}`);
  return parseS3BucketParameters(parameters, [], Object.keys(ELSEWHERE));
}
