import { describe, expect, it } from 'vitest';
import { type Context, expectRefusal } from '#test/cosi/conformance/context';
import { at, bytes, entry, msg, num, parse } from '#test/cosi/wire';

const V1ALPHA1 = '/cosi.v1alpha1';
const V1ALPHA2 = '/sigs.k8s.io.cosi.v1alpha2';
const S3 = num(1, 1);
const KEY = num(1, 1);

/** Field numbers of each revision in raw bytes, and bytes that are no message. */
export function wireCases(context: Context): void {
  const send = async (path: string, ...parts: Buffer[]): Promise<Buffer> => {
    const outcome = await context.client.raw(path, Buffer.concat(parts));
    expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
    return outcome.reply as Buffer;
  };

  describe('field numbers', () => {
    it('v1alpha1', async () => {
      const bucket = context.bucket();
      expect(at(await send(`${V1ALPHA1}.Identity/DriverGetInfo`), 1)).toBe(context.target.driverName);

      const created = await send(
        `${V1ALPHA1}.Provisioner/DriverCreateBucket`,
        bytes(1, bucket),
        entry(2, 'versioning', 'true'),
      );
      expect(at(created, 1)).toBe(bucket);
      expect(at(created, 2, 1, 1)).toMatch(/./); // region
      expect(at(created, 2, 1, 2)).toBe(2); // S3V4

      const grant = [bytes(1, bucket), bytes(2, context.access()), num(3, 1), entry(4, 'accessMode', 'ReadOnly')];
      const granted = await send(`${V1ALPHA1}.Provisioner/DriverGrantBucketAccess`, ...grant);
      const account = at(granted, 1) as string;
      expect(account).toMatch(/./);
      expect(at(granted, 2, 1)).toBe('s3');
      const secrets = (parse(parse(parse(granted).get(2)?.[0] as Buffer).get(2)?.[0] as Buffer).get(1) ??
        []) as Buffer[];
      const keys = secrets.map(secret => at(secret, 1)).sort();
      expect(keys).toEqual(['accessKeyID', 'accessSecretKey', 'endpoint', 'region']);

      const revoke = [bytes(1, bucket), bytes(2, account), entry(3, 'any', 'thing')];
      await send(`${V1ALPHA1}.Provisioner/DriverRevokeBucketAccess`, ...revoke);
      expect(await context.target.control.accounts()).not.toContain(account);
      await send(`${V1ALPHA1}.Provisioner/DriverDeleteBucket`, bytes(1, bucket), entry(2, 'any', 'thing'));
      expect(await context.target.control.buckets()).not.toContain(bucket);
    });

    it('v1alpha2 R1: create, get, delete', async () => {
      const bucket = context.bucket();
      const info = await send(`${V1ALPHA2}.Identity/DriverGetInfo`);
      expect(at(info, 1)).toBe(context.target.driverName);
      expect(at(info, 2, 1)).toBe(1);
      const create = [bytes(1, bucket), msg(2, S3), entry(4, 'versioning', 'true')];
      expectBucket(await send(`${V1ALPHA2}.Provisioner/DriverCreateBucket`, ...create), bucket);
      expectBucket(await send(`${V1ALPHA2}.Provisioner/DriverGetExistingBucket`, bytes(1, bucket), msg(2, S3)), bucket);
      await send(`${V1ALPHA2}.Provisioner/DriverDeleteBucket`, bytes(1, bucket), entry(4, 'any', 'thing'));
      expect(await context.target.control.buckets()).not.toContain(bucket);
    });

    it('v1alpha2 R2 and R4: the same bytes by other methods', async () => {
      const bucket = context.bucket();
      const create = [bytes(1, bucket), msg(2, S3)];
      const generated = await send(`${V1ALPHA2}.Provisioner/DriverGenerateBucketId`, ...create);
      expect([...parse(generated).keys()]).toEqual([1]);
      expect(at(generated, 1)).toBe(bucket);
      await send(`${V1ALPHA2}.Provisioner/DriverCreateBucket`, ...create);
      expectBucket(await send(`${V1ALPHA2}.Provisioner/DriverGetBucket`, bytes(1, bucket), msg(2, S3)), bucket);
    });

    // R1 numbers READ_ONLY 2, R3 numbers it 3; fields 3 and 4 of a bucket tell them apart.
    it('v1alpha2 R1 and R3: grants and revokes', async () => {
      const bucket = await context.madeBucket();
      const head = [bytes(1, context.access()), msg(2, S3), msg(3, KEY)];
      const path = `${V1ALPHA2}.Provisioner/DriverGrantBucketAccess`;
      const r1 = await send(path, ...head, msg(6, bytes(1, bucket), msg(2, num(1, 2))));
      const r3 = await send(
        path,
        ...head,
        msg(6, bytes(1, bucket), msg(2, num(1, 3)), msg(3, num(1, 1)), msg(4, num(1, 1))),
      );
      expect(r3).toEqual(r1);

      const account = at(r1, 1) as string;
      expect(account).toMatch(/./);
      expect(at(r1, 2, 1)).toBe(bucket);
      expectS3(parse(parse(r1).get(2)?.[0] as Buffer).get(2)?.[0] as Buffer, bucket);
      expect(at(r1, 3, 1, 1)).toMatch(/./); // access_key_id
      expect(at(r1, 3, 1, 2)).toMatch(/./); // access_secret_key

      const revoke = [bytes(1, account), msg(2, S3), msg(3, KEY), entry(5, 'any', 'thing'), msg(6, bytes(1, bucket))];
      await send(`${V1ALPHA2}.Provisioner/DriverRevokeBucketAccess`, ...revoke);
      expect(await context.target.control.accounts()).not.toContain(account);
    });

    it('v1alpha2: one bucket with fields 3 or 4 makes the whole request R3', async () => {
      const [one, two] = [await context.madeBucket(), await context.madeBucket()];
      const head = [bytes(1, context.access()), msg(2, S3), msg(3, KEY)];
      const split = msg(6, bytes(1, one), msg(2, num(1, 2)), msg(3, num(1, 1)), msg(4, num(1, 1)));
      const plain = msg(6, bytes(1, two), msg(2, num(1, 2)));
      const outcome = await context.client.raw(
        `${V1ALPHA2}.Provisioner/DriverGrantBucketAccess`,
        Buffer.concat([...head, split, plain]),
      );
      expectRefusal(outcome, 'INVALID_ARGUMENT', /^buckets\[1\]\.object_metadata_access_mode: /);
    });

    it('unknown fields are skipped', async () => {
      const bucket = context.bucket();
      const more = [num(100, 7), bytes(101, 'x'), Buffer.from([0x91, 0x03, 1, 2, 3, 4, 5, 6, 7, 8])];
      await send(`${V1ALPHA1}.Provisioner/DriverCreateBucket`, ...more, bytes(1, bucket));
      expect(await context.target.control.buckets()).toContain(bucket);
    });
  });

  describe('bytes that are no message are INVALID_ARGUMENT and leave no trace', () => {
    const name = 'wire-garbage';
    it.each([
      ['noise', Buffer.from('ffffffffffffffffffffff', 'hex')],
      ['a name that is cut', bytes(1, name).subarray(0, -3)],
      ['a length beyond the end', Buffer.from([0x0a, 0xff, 0xff, 0x03, 0x61])],
      ['an endless number', Buffer.from('0affffffffffffffffffffff01', 'hex')],
      ['a name that is a number', num(1, 5)],
      ['a name that is not UTF-8', bytes(1, Buffer.from([0x61, 0xc3, 0x28]))],
      [
        'a parameter that is not UTF-8',
        Buffer.concat([bytes(1, name), msg(2, bytes(1, 'k'), bytes(2, Buffer.from([0xff])))]),
      ],
      [
        'a map entry that runs over its end',
        Buffer.concat([bytes(2, Buffer.from([0x0a, 0x05, 0x61])), bytes(1, name)]),
      ],
      ['field number 0', Buffer.concat([Buffer.from([0x02, 0x00]), bytes(1, name)])],
      ['a group', Buffer.concat([Buffer.from([0x53]), bytes(1, name)])],
    ])('%s', async (_, garbage) => {
      await context.leavesNoTrace(async () => {
        const outcome = await context.client.raw(`${V1ALPHA1}.Provisioner/DriverCreateBucket`, garbage);
        expectRefusal(outcome, 'INVALID_ARGUMENT', /^request: /);
      });
    });
  });

  describe('beyond the protocol', () => {
    it('unknown methods and services are UNIMPLEMENTED', async () => {
      for (const path of [
        `${V1ALPHA1}.Provisioner/DriverGetBucket`,
        `${V1ALPHA2}.Provisioner/DriverGenerateBucketAccessId`,
        '/cosi.v1alpha3.Identity/DriverGetInfo',
        '/Identity/DriverGetInfo',
        '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      ]) {
        expectRefusal(await context.client.raw(path, Buffer.alloc(0)), 'UNIMPLEMENTED', /./);
      }
    });

    it('a message beyond the receive limit is refused unread', async () => {
      const outcome = await context.client.raw(
        `${V1ALPHA1}.Provisioner/DriverCreateBucket`,
        bytes(1, Buffer.alloc(9 * 1024 * 1024, 'a')),
      );
      expectRefusal(outcome, 'RESOURCE_EXHAUSTED', /larger than max/);
    });
  });
}

function expectBucket(reply: Buffer, bucket: string): void {
  expect(at(reply, 1)).toBe(bucket);
  expectS3(parse(reply).get(2)?.[0] as Buffer, bucket);
}

/** ObjectProtocolAndBucketInfo with S3 and nothing else. */
function expectS3(info: Buffer, bucket: string): void {
  expect([...parse(info).keys()]).toEqual([1]);
  expect(at(info, 1, 1)).toBe(bucket);
  expect(at(info, 1, 2)).toMatch(/^https?:/);
  expect(at(info, 1, 3)).toMatch(/./);
  expect([1, 2]).toContain(at(info, 1, 4, 1));
}
