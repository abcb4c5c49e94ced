import type { BucketSpec } from '#backends/object-backend';
import { checkS3BucketName } from '#backends/s3/bucket-name';
import { parseS3BucketParameters } from '#backends/s3/bucket-parameters';
import { invalid } from '#platform/errors';

/** What RGW's classes may ask for, and Cloud Storage has not, or not so. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  quotaMaxSize: 'Cloud Storage has no quota of a bucket',
  quotaMaxObjects: 'Cloud Storage has no quota of a bucket',
  placement: 'it is of Ceph alone',
  objectLock: 'retention there is set object by object, by whom owns the bucket',
};
const KMS_KEY = /^projects\/[^/\s]+\/locations\/[^/\s]+\/keyRings\/[^/\s]+\/cryptoKeys\/[^/\s]+$/;
/** Two are Trivet's own, of 64. */
const MAX_LABELS = 64 - 2;
const LABEL_KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u;
const LABEL_VALUE = /^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u;

export function parseGcsBucketParameters(parameters: Readonly<Record<string, string>>): BucketSpec {
  const { kmsKey, ...others } = parameters;
  for (const [key, why] of Object.entries(ELSEWHERE))
    if (key in others) throw invalid(`parameters[${key}]`, `not possible on Google Cloud Storage: ${why}`);
  const spec = parseS3BucketParameters(others, ['kmsKey'], Object.keys(ELSEWHERE));
  if (kmsKey !== undefined && !KMS_KEY.test(kmsKey))
    throw invalid('parameters[kmsKey]', 'expected projects/…/locations/…/keyRings/…/cryptoKeys/…');
  const tags = Object.entries(spec.tags);
  for (const [key, value] of tags)
    if (!LABEL_KEY.test(key) || !LABEL_VALUE.test(value))
      throw invalid(
        'parameters[tags]',
        `'${key}' is no label of Cloud Storage: up to 63 lower-case letters, digits, dashes and underscores, the key beginning with a letter`,
      );
  if (tags.length > MAX_LABELS) throw invalid('parameters[tags]', `at most ${MAX_LABELS} are possible`);
  return { ...spec, ...(kmsKey === undefined ? {} : { encryption: 'SSE-KMS', kmsKey }) };
}

/** As S3's, without dots, whose owner Google wants proved, and without Google's own name (https://cloud.google.com/storage/docs/buckets#naming). */
export function checkGcsBucketName(name: string, field: string): void {
  checkS3BucketName(name, field);
  if (name.includes('.'))
    throw invalid(field, 'a name with dots belongs to whom Google knows as the owner of the domain');
  if (name.startsWith('goog') || name.includes('google') || name.includes('g00gle'))
    throw invalid(field, 'names of Cloud Storage do not begin with goog, nor hold google');
}
