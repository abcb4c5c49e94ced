import { invalid } from '#platform/errors';

/** Forms that S3's rules or the stock SDKs reserve: an SDK sends such a name to another service, or parses it as an alias. */
const RESERVED_PREFIXES = ['xn--', 'sthree-', 'amzn-s3-demo-'];
const RESERVED_SUFFIXES = ['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3'];

/**
 * S3's rules for new buckets, so that the name works with every client and in a virtual host.
 * Throws `invalid_argument` that says which rule is broken.
 */
export function checkS3BucketName(name: string, field: string): void {
  const problem = bucketNameProblem(name);
  if (problem !== undefined) throw invalid(field, problem);
}

function bucketNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name.length < 3 || name.length > 63) return `expected 3 to 63 characters, got ${name.length}`;
  if (!/^[a-z0-9.-]+$/.test(name)) return 'only lower-case letters a-z, digits, dots and dashes are allowed';
  if (!/^[a-z0-9].*[a-z0-9]$/.test(name)) return 'must begin and end with a letter or digit';
  if (/\.\.|\.-|-\./.test(name)) return 'a dot must stand between letters or digits';
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return 'must not look like an IP address';
  const prefix = RESERVED_PREFIXES.find(p => name.startsWith(p));
  if (prefix !== undefined) return `must not begin with the reserved '${prefix}'`;
  const suffix = RESERVED_SUFFIXES.find(s => name.endsWith(s));
  if (suffix !== undefined) return `must not end with the reserved '${suffix}'`;
  return undefined;
}
