import type { BucketSpec } from '#backends/object-backend';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { invalid } from '#platform/errors';

/** What RGW's classes may ask for, and S3 with IAM has not. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  quotaMaxSize: 'S3 has no quota of a bucket',
  quotaMaxObjects: 'S3 has no quota of a bucket',
  placement: 'it is of Ceph alone',
};
const KMS_KEY = /^[\w:/-]{1,2048}$/;

/** Beyond those of every S3: encryption. Strict as they are. */
export function parseIamBucketParameters(parameters: Readonly<Record<string, string>>): BucketSpec {
  const { encryption, kmsKey, ...others } = parameters;
  for (const [key, why] of Object.entries(ELSEWHERE))
    if (key in others) throw invalid(`parameters[${key}]`, `not possible here: ${why}`);
  const spec = parseS3BucketParameters(others, ['encryption', 'kmsKey'], Object.keys(ELSEWHERE));
  if (encryption !== undefined && encryption !== 'SSE-S3' && encryption !== 'SSE-KMS')
    throw invalid('parameters[encryption]', `expected SSE-S3 or SSE-KMS, got '${encryption}'`);
  if (kmsKey !== undefined && encryption !== 'SSE-KMS')
    throw invalid('parameters[kmsKey]', 'is for encryption SSE-KMS alone');
  if (kmsKey !== undefined && !KMS_KEY.test(kmsKey))
    throw invalid('parameters[kmsKey]', 'expected the id, alias or ARN of a key');
  return {
    ...spec,
    ...(encryption === undefined ? {} : { encryption }),
    ...(kmsKey === undefined ? {} : { kmsKey }),
  };
}
