import { describe, it } from 'vitest';
import { type Dialect } from '#test/cosi/client';
import { type Context, createRequest, grantRequest } from '#test/cosi/conformance/context';

const CREATE = 'DriverCreateBucket';
const GRANT = 'DriverGrantBucketAccess';
const FIVE_MIB = 'x'.repeat(5 * 1024 * 1024);

const BAD_NAMES: readonly (readonly [string, string])[] = [
  ['empty', ''],
  ['too long', 'a'.repeat(254)],
  ['5 MiB', FIVE_MIB],
  ['upper-case', 'Photos'],
  ['non-ASCII', 'fotos-münchen'],
  ['two dots', 'a..b'],
  ['only dots', '..'],
  ['a path', '../etc'],
  ['leading dash', '-photos'],
  ['trailing dash', 'photos-'],
  ['underscore', 'my_photos'],
  ['space', 'my photos'],
  ['slash', 'my/photos'],
  ['newline', 'photos\n'],
  ['NUL', 'pho\u0000tos'],
];

/** Bad for a bucket of S3, whatever the protocol allows. */
const BAD_BUCKET_NAMES: readonly (readonly [string, string])[] = [
  ...BAD_NAMES,
  ['too short for a bucket', 'ab'],
  ['too long for a bucket', 'a'.repeat(64)],
];

const BAD_PARAMETERS: readonly (readonly [string, Record<string, string>, RegExp])[] = [
  ['unknown key', { colour: 'blue' }, /^parameters\[colour\]: /],
  ['prototype key', JSON.parse('{"__proto__":"x"}'), /^parameters\[__proto__\]: /],
  ['malformed number', { quotaMaxSize: 'lots' }, /^parameters\[quotaMaxSize\]: /],
  ['negative number', { quotaMaxObjects: '-1' }, /^parameters\[quotaMaxObjects\]: /],
  ['malformed flag', { versioning: 'maybe' }, /^parameters\[versioning\]: /],
  ['empty value', { versioning: '' }, /^parameters\[versioning\]: /],
  ['malformed policy', { deletePolicy: 'shred' }, /^parameters\[deletePolicy\]: /],
  ['empty key', { '': 'x' }, /^parameters: /],
  ['control characters', { 'tag\u0000': 'x' }, /^parameters: /],
  ['too large', { versioning: 'true', filler: 'x'.repeat(4096) }, /^parameters: /],
  ['5 MiB', { filler: FIVE_MIB }, /^parameters: /],
];

export function badInputCases(context: Context): void {
  const refused = (dialect: Dialect, method: string, request: object, about: RegExp) =>
    context.leavesNoTrace(async () => {
      await context.refuse(dialect, method, request, 'INVALID_ARGUMENT', about);
    });

  describe.each(context.dialects)('%s: bad input is INVALID_ARGUMENT, names the field and leaves no trace', dialect => {
    it.each(BAD_BUCKET_NAMES)('bucket name: %s', async (_, name) => {
      await refused(dialect, CREATE, createRequest(dialect, name), /^name: /);
    });

    it.each(BAD_PARAMETERS)('bucket parameters: %s', async (_, parameters, about) => {
      await refused(dialect, CREATE, createRequest(dialect, context.bucket(), parameters), about);
    });

    it.each(BAD_NAMES)('access name: %s', async (_, name) => {
      const bucket = await context.anyBucket();
      const field = dialect === 'v1alpha1' ? /^name: / : /^account_name: /;
      await refused(dialect, GRANT, grantRequest(dialect, name, [[bucket, 'READ_WRITE']]), field);
    });

    it.each([
      ['empty', ''],
      ['too long', 'a'.repeat(2049)],
      ['5 MiB', FIVE_MIB],
      ['control characters', 'a\u0001b'],
    ])('bucket of an access: %s', async (_, bucket) => {
      const request = grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]);
      await refused(dialect, GRANT, request, dialect === 'v1alpha1' ? /^bucket_id: / : /^buckets\[0\].bucket_id: /);
    });
  });

  describe('v1alpha1: a grant that can never be', () => {
    it.each([
      [
        'authentication UnknownAuthenticationType',
        { authentication_type: 'UnknownAuthenticationType' },
        'authentication_type: .*write "authenticationType: Key" in the BucketAccessClass, not KEY',
      ],
      ['authentication IAM', { authentication_type: 'IAM' }, 'authentication_type'],
      ['authentication number 77', { authentication_type: 77 }, 'authentication_type'],
      ['access mode', { parameters: { accessMode: 'Everything' } }, 'parameters\\[accessMode\\]'],
      ['access mode in other letters', { parameters: { accessMode: 'readonly' } }, 'parameters\\[accessMode\\]'],
      ['unknown parameter', { parameters: { colour: 'blue' } }, 'parameters\\[colour\\]'],
      ['too large parameters', { parameters: { accessMode: 'x'.repeat(5000) } }, 'parameters'],
    ])('%s', async (_, change, field) => {
      const bucket = await context.anyBucket();
      const request = { ...grantRequest('v1alpha1', context.access(), [[bucket, 'READ_WRITE']]), ...change };
      await refused('v1alpha1', GRANT, request, new RegExp(`^${field}(: |$)`));
    });
  });

  describe.each(['r1', 'r3'] as const)('%s: a grant that can never be', dialect => {
    it.each([
      ['no protocol', { protocol: undefined }, 'protocol'],
      ['protocol UNKNOWN', { protocol: { type: 'UNKNOWN' } }, 'protocol'],
      ['protocol AZURE', { protocol: { type: 'AZURE' } }, 'protocol: AZURE is not supported, supported: S3'],
      ['protocol GCS', { protocol: { type: 'GCS' } }, 'protocol: GCS is not supported, supported: S3'],
      ['protocol number 77', { protocol: { type: 77 } }, 'protocol'],
      ['no authentication', { authentication_type: undefined }, 'authentication_type'],
      ['authentication UNKNOWN', { authentication_type: { type: 'UNKNOWN' } }, 'authentication_type'],
      ['authentication number 77', { authentication_type: { type: 77 } }, 'authentication_type'],
      ['service account without a name', { authentication_type: { type: 'SERVICE_ACCOUNT' } }, 'service_account_name'],
      [
        'service account',
        { authentication_type: { type: 'SERVICE_ACCOUNT' }, service_account_name: 'robot' },
        'authentication_type: SERVICE_ACCOUNT is not supported by this backend',
      ],
      ['key with a service account', { service_account_name: 'robot' }, 'service_account_name'],
      ['unknown parameter', { parameters: { colour: 'blue' } }, 'parameters\\[colour\\]'],
      ['no buckets', { buckets: [] }, 'buckets'],
    ])('%s', async (_, change, field) => {
      const bucket = await context.anyBucket();
      const request = { ...grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]), ...change };
      await refused(dialect, GRANT, request, new RegExp(`^${field}`));
    });

    it('a bucket twice, too many buckets, modes that are none', async () => {
      const bucket = await context.anyBucket();
      const grant = (buckets: readonly (readonly [string, string])[]) =>
        grantRequest(dialect, context.access(), buckets as never);
      const twice = [
        [bucket, 'READ_WRITE'],
        [bucket, 'READ_ONLY'],
      ] as const;
      await refused(dialect, GRANT, grant(twice), /^buckets\[1\].bucket_id: /);
      const many = Array.from({ length: 129 }, (_, index) => [`b-${index}`, 'READ_WRITE'] as const);
      await refused(dialect, GRANT, grant(many), /^buckets: /);
      for (const mode of ['UNKNOWN', 5, 77, -1]) {
        const wish = [[bucket, mode as string]] as const;
        await refused(dialect, GRANT, grant(wish), /^buckets\[0\]\.(object_data_)?access_mode: /);
      }
    });
  });

  it('r1: number 4 is no access mode before revision 3', async () => {
    const bucket = await context.anyBucket();
    const request = grantRequest('r1', context.access(), [[bucket, 4 as never]]);
    await refused('r1', GRANT, request, /^buckets\[0\]\.access_mode: /);
  });

  it.each(['r1', 'r2', 'r3', 'r4'] as const)('%s: protocols of a bucket', async dialect => {
    const create = (protocols: object[]) => createRequest(dialect, context.bucket(), {}, protocols);
    await refused(
      dialect,
      CREATE,
      create([{ type: 'AZURE' }]),
      /^protocols\[0\]: AZURE is not supported, supported: S3/,
    );
    await refused(dialect, CREATE, create([{ type: 'S3' }, { type: 'GCS' }]), /^protocols\[1\]: GCS/);
    await refused(dialect, CREATE, create([{ type: 'UNKNOWN' }]), /^protocols\[0\]: /);
    await refused(dialect, CREATE, create([{}]), /^protocols\[0\]: /);
    await refused(dialect, CREATE, create([{ type: 77 }]), /^protocols\[0\]: /);
    await refused(dialect, CREATE, create(Array.from({ length: 17 }, () => ({ type: 'S3' }))), /^protocols: /);
  });
}
