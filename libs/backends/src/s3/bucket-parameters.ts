import type { BucketSpec } from '#backends/object-backend';
import { parseTags } from '#backends/s3/bucket-tags';
import { parseByteSize } from '#backends/s3/byte-size';
import { invalid } from '#platform/errors';

type Reader = (value: string, field: string, spec: Draft) => void;
type Draft = { -readonly [K in keyof BucketSpec]: BucketSpec[K] } & { versioningGiven?: boolean };

/** Zone group and placement target are names inside a location constraint, whose separator is the colon. */
const LOCATION = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

const READERS: Readonly<Record<string, Reader>> = {
  region: (value, field, spec) => {
    spec.region = location(value, field);
  },
  placement: (value, field, spec) => {
    spec.placement = location(value, field);
  },
  quotaMaxSize: (value, field, spec) => {
    spec.quotaMaxSize = parseByteSize(value);
    if (spec.quotaMaxSize === undefined)
      throw invalid(
        field,
        `expected bytes, or a whole number with Ki, Mi, Gi, Ti, Pi or Ei, above zero; got '${value}'`,
      );
  },
  quotaMaxObjects: (value, field, spec) => {
    if (!/^[1-9]\d{0,17}$/.test(value)) throw invalid(field, `expected a whole number above zero, got '${value}'`);
    spec.quotaMaxObjects = value;
  },
  versioning: (value, field, spec) => {
    spec.versioning = boolean(value, field);
    spec.versioningGiven = true;
  },
  objectLock: (value, field, spec) => {
    spec.objectLock = boolean(value, field);
  },
  tags: (value, field, spec) => {
    spec.tags = parseTags(value, field);
  },
  deletePolicy: (value, field, spec) => {
    if (value !== 'retain' && value !== 'purge') throw invalid(field, `expected retain or purge, got '${value}'`);
    spec.deletePolicy = value;
  },
};

/**
 * Class parameters of an S3 bucket as its canonical desired state: equal requests give deeply equal specs, with keys in
 * a fixed order. Strict: an unknown key or a malformed value is `invalid_argument` with field `parameters[key]`.
 */
export function parseS3BucketParameters(
  parameters: Readonly<Record<string, string>>,
  further: readonly string[] = [],
  without: readonly string[] = [],
): BucketSpec {
  const draft: Draft = { versioning: false, objectLock: false, tags: {}, deletePolicy: 'retain' };
  for (const [key, value] of Object.entries(parameters)) {
    const field = `parameters[${key}]`;
    const read = Object.hasOwn(READERS, key) ? READERS[key] : undefined;
    const known = [...Object.keys(READERS).filter(one => !without.includes(one)), ...further];
    if (!read) throw invalid(field, `unknown parameter; known are ${known.join(', ')}`);
    read(value, field, draft);
  }
  if (draft.objectLock && draft.versioningGiven && !draft.versioning)
    throw invalid('parameters[versioning]', 'object lock needs versioning');
  return {
    ...(draft.region === undefined ? {} : { region: draft.region }),
    ...(draft.placement === undefined ? {} : { placement: draft.placement }),
    versioning: draft.versioning || draft.objectLock,
    objectLock: draft.objectLock,
    ...(draft.quotaMaxSize === undefined ? {} : { quotaMaxSize: draft.quotaMaxSize }),
    ...(draft.quotaMaxObjects === undefined ? {} : { quotaMaxObjects: draft.quotaMaxObjects }),
    tags: draft.tags,
    deletePolicy: draft.deletePolicy,
  };
}

function boolean(value: string, field: string): boolean {
  if (value !== 'true' && value !== 'false') throw invalid(field, `expected true or false, got '${value}'`);
  return value === 'true';
}

function location(value: string, field: string): string {
  if (!LOCATION.test(value))
    throw invalid(field, `expected letters, digits, dots, dashes, underscores; got '${value}'`);
  return value;
}
