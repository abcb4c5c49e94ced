import type { ApplianceIdentity } from '#backends/object-backend';
import { invalid } from '#platform/errors';

/** Tags by which Trivet knows its own buckets; users' tags may not begin with the prefix. */
export const TAG_PREFIX = 'trivet';
export const APPLIANCE_TAG = 'trivet-appliance';
export const INCARNATION_TAG = 'trivet-incarnation';

/** S3 allows 50 tags on a bucket. */
const MAX_USER_TAGS = 50 - 2;
const MAX_KEY = 128;
const MAX_VALUE = 256;
const ALLOWED = /^[\p{L}\p{N}\p{Zs}_.:/=+\-@]*$/u;

/** The value of the appliance tag: tenants of one appliance never take each other's buckets for their own. */
export const applianceTag = (owner: ApplianceIdentity): string => `${owner.applianceId}/${owner.tenantId}`;

/** `key=value,key2=value2` as a record with sorted keys. Throws `invalid_argument`. */
export function parseTags(text: string, field: string): Record<string, string> {
  const tags = new Map<string, string>();
  if (text === '') return {};
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=');
    if (at < 0) throw invalid(field, `expected key=value pairs separated by commas, got '${pair}'`);
    const key = pair.slice(0, at).trim();
    const value = pair.slice(at + 1).trim();
    if (key === '' || key.length > MAX_KEY) throw invalid(field, `a tag's key needs 1 to ${MAX_KEY} characters`);
    if (value.length > MAX_VALUE) throw invalid(field, `the value of tag '${key}' exceeds ${MAX_VALUE} characters`);
    if (!ALLOWED.test(key) || !ALLOWED.test(value))
      throw invalid(field, `tag '${key}' holds a character that S3 does not allow in tags`);
    const lower = key.toLowerCase();
    if (lower.startsWith(TAG_PREFIX) || lower.startsWith('aws:'))
      throw invalid(field, `tag '${key}' begins with a reserved prefix`);
    if (tags.has(key)) throw invalid(field, `tag '${key}' is given twice`);
    tags.set(key, value);
  }
  if (tags.size > MAX_USER_TAGS) throw invalid(field, `at most ${MAX_USER_TAGS} tags are possible, got ${tags.size}`);
  return Object.fromEntries([...tags].sort(([a], [b]) => (a < b ? -1 : 1)));
}
