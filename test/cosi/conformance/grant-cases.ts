import { describe, expect, it } from 'vitest';
import { type Dialect, type Reply } from '#test/cosi/client';
import { accessedBucket, type Context, grantRequest, type Mode } from '#test/cosi/conformance/context';
import { v1alpha1Grant, v1alpha2Grant } from '#test/cosi/sidecar-checks';

const GRANT = 'DriverGrantBucketAccess';

/** The account and key of a reply, whatever the dialect. */
const identity = (dialect: Dialect, reply: Reply) =>
  dialect === 'v1alpha1'
    ? {
        account: reply.account_id,
        key: reply.credentials.s3.secrets.accessKeyID,
        secret: reply.credentials.s3.secrets.accessSecretKey,
      }
    : {
        account: reply.account_id,
        key: reply.credentials.s3.access_key_id,
        secret: reply.credentials.s3.access_secret_key,
      };

export function grantCases(context: Context): void {
  describe(GRANT, () => {
    it.each(context.dialects)(
      '%s: gives an account that the sidecar accepts, the same on every repeat',
      async dialect => {
        const bucket = await context.madeBucket();
        const request = grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]);
        const first = await context.settle(dialect, GRANT, request);
        expect(dialect === 'v1alpha1' ? v1alpha1Grant(first) : v1alpha2Grant(first, [bucket])).toEqual([]);
        expect(await context.settle(dialect, GRANT, request)).toEqual(first);
        expect(await context.target.control.accounts()).toContain(first.account_id);
      },
    );

    it.each(['READ_WRITE', 'READ_ONLY', 'WRITE_ONLY'] as const)('%s is one wish in every dialect', async mode => {
      const bucket = await context.madeBucket();
      const name = context.access();
      const first = await context.settle('v1alpha1', GRANT, grantRequest('v1alpha1', name, [[bucket, mode]]));
      for (const dialect of context.v1alpha2) {
        const reply = await context.settle(dialect, GRANT, grantRequest(dialect, name, [[bucket, mode]]));
        expect(identity(dialect, reply)).toEqual(identity('v1alpha1', first));
      }
    });

    it('v1alpha1: without a parameter the mode is ReadWrite', async () => {
      const bucket = await context.madeBucket();
      const name = context.access();
      const bare = { bucket_id: bucket, name, authentication_type: 'Key' };
      const first = await context.settle('v1alpha1', GRANT, bare);
      const spelled = await context.settle('v1alpha1', GRANT, grantRequest('v1alpha1', name, [[bucket, 'READ_WRITE']]));
      expect(spelled).toEqual(first);
    });

    it('two names are two accounts', async () => {
      const bucket = await context.madeBucket();
      const one = await context.settle('r1', GRANT, grantRequest('r1', context.access(), [[bucket, 'READ_WRITE']]));
      const two = await context.settle('r1', GRANT, grantRequest('r1', context.access(), [[bucket, 'READ_WRITE']]));
      expect(identity('r1', one).account).not.toBe(identity('r1', two).account);
      expect(identity('r1', one).key).not.toBe(identity('r1', two).key);
      expect(identity('r1', one).secret).not.toBe(identity('r1', two).secret);
    });

    it('eight callers at once get one account', async () => {
      const bucket = await context.madeBucket();
      const request = grantRequest('r1', context.access(), [[bucket, 'READ_WRITE']]);
      const replies = await Promise.all(Array.from({ length: 8 }, () => context.settle('r1', GRANT, request)));
      expect(new Set(replies.map(reply => JSON.stringify(identity('r1', reply)))).size).toBe(1);
    });

    it.each(context.v1alpha2)('%s: several buckets share one key, in any order', async dialect => {
      const buckets = [await context.madeBucket(), await context.madeBucket(), await context.madeBucket()];
      const modes: Mode[] = ['READ_WRITE', 'READ_ONLY', 'WRITE_ONLY'];
      const wishes = buckets.map((bucket, index) => [bucket, modes[index] as Mode] as const);
      const name = context.access();
      const first = await context.settle(dialect, GRANT, grantRequest(dialect, name, wishes));
      expect(v1alpha2Grant(first, buckets)).toEqual([]);
      const again = await context.settle(dialect, GRANT, grantRequest(dialect, name, wishes.toReversed()));
      expect(v1alpha2Grant(again, buckets)).toEqual([]);
      expect(identity(dialect, again)).toEqual(identity(dialect, first));
    });

    it.each(context.v1alpha2)('%s: another request under the name is ALREADY_EXISTS', async dialect => {
      const [one, two] = [await context.madeBucket(), await context.madeBucket()];
      const name = context.access();
      const request = grantRequest(dialect, name, [[one, 'READ_WRITE']]);
      const first = await context.settle(dialect, GRANT, request);
      const others = [
        grantRequest(dialect, name, [[one, 'READ_ONLY']]),
        grantRequest(dialect, name, [[two, 'READ_WRITE']]),
        grantRequest(dialect, name, [
          [one, 'READ_WRITE'],
          [two, 'READ_WRITE'],
        ]),
      ];
      const message = new RegExp(`${name} exists with another request: buckets$`);
      for (const other of others) await context.refuse(dialect, GRANT, other, 'ALREADY_EXISTS', message);
      expect(await context.settle(dialect, GRANT, request)).toEqual(first);
    });

    it.each(context.dialects)('%s: a bucket that is not there is NOT_FOUND, and nothing is granted', async dialect => {
      const there = await context.madeBucket();
      const foreign = context.bucket();
      await context.target.control.makeForeignBucket(foreign);
      await context.leavesNoTrace(async () => {
        for (const missing of [context.bucket(), foreign]) {
          const wishes = [[missing, 'READ_WRITE'] as const, [there, 'READ_WRITE'] as const];
          const request = grantRequest(dialect, context.access(), wishes);
          await context.refuse(dialect, GRANT, request, 'NOT_FOUND', missing);
        }
      });
    });

    it('a registered bucket can be granted', async () => {
      const bucket = context.bucket();
      await context.target.control.registerBucket(bucket);
      for (const dialect of ['v1alpha1', 'r1'] as const) {
        const request = grantRequest(dialect, context.access(), [[bucket, 'READ_ONLY']]);
        await context.settle(dialect, GRANT, request);
      }
    });

    it.each([
      ['data ANY is read only', 'ANY', 'ANY', 'ANY'],
      ['metadata like the data', 'READ_ONLY', 'READ_ONLY', 'READ_ONLY'],
    ])('r3: %s', async (_, data, object, metadata) => {
      const bucket = await context.madeBucket();
      const name = context.access();
      const request = { ...grantRequest('r3', name, []), buckets: [split(bucket, data, object, metadata)] };
      const reply = await context.settle('r3', GRANT, request);
      const plain = await context.settle('r1', GRANT, grantRequest('r1', name, [[bucket, 'READ_ONLY']]));
      expect(plain).toEqual(reply);
    });

    it.each([
      ['READ_WRITE', 'READ_ONLY', 'ANY', 'object_metadata'],
      ['READ_ONLY', 'READ_WRITE', 'ANY', 'object_metadata'],
      ['READ_WRITE', 'ANY', 'READ_WRITE', 'bucket_metadata'],
      ['READ_WRITE', 'ANY', 'WRITE_ONLY', 'bucket_metadata'],
      ['WRITE_ONLY', 'ANY', 'READ_ONLY', 'bucket_metadata'],
      ['UNKNOWN', 'ANY', 'ANY', 'object_data'],
      ['READ_WRITE', 'UNKNOWN', 'ANY', 'object_metadata'],
      ['READ_WRITE', 'ANY', 'UNKNOWN', 'bucket_metadata'],
    ])('r3: data %s, object metadata %s, bucket metadata %s cannot be', async (data, object, metadata, field) => {
      const bucket = await context.madeBucket();
      const request = { ...grantRequest('r3', context.access(), []), buckets: [split(bucket, data, object, metadata)] };
      await context.leavesNoTrace(async () => {
        await context.refuse(
          'r3',
          GRANT,
          request,
          'INVALID_ARGUMENT',
          new RegExp(`^buckets\\[0\\].${field}_access_mode`),
        );
      });
    });

    it('UNAVAILABLE while the store is down, done by a repeat afterwards', async () => {
      const bucket = await context.madeBucket();
      const request = grantRequest('r1', context.access(), [[bucket, 'READ_WRITE']]);
      await context.target.control.setDown(true);
      try {
        await context.refuse('r1', GRANT, request, 'UNAVAILABLE');
      } finally {
        await context.target.control.setDown(false);
      }
      expect(v1alpha2Grant(await context.settle('r1', GRANT, request), [bucket])).toEqual([]);
    });
  });
}

const split = (bucket_id: string, data: string, object: string, metadata: string): object => ({
  ...accessedBucket('r3', bucket_id, data),
  object_metadata_access_mode: { mode: object },
  bucket_metadata_access_mode: { mode: metadata },
});
