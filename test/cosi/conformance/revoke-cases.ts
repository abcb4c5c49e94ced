import { describe, expect, it } from 'vitest';

import { type Context, grantRequest, revokeRequest } from '#test/cosi/conformance/context';

const GRANT = 'DriverGrantBucketAccess';
const REVOKE = 'DriverRevokeBucketAccess';

export function revokeCases(context: Context): void {
  const accounts = () => context.target.control.accounts();

  describe(REVOKE, () => {
    it.each(context.dialects)('%s: ends this account and no other; a repeat is OK', async dialect => {
      const bucket = await context.madeBucket();
      const kept = grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]);
      const { account_id: other } = await context.settle(dialect, GRANT, kept);
      const request = grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]);
      const { account_id } = await context.settle(dialect, GRANT, request);
      await context.settle(dialect, REVOKE, revokeRequest(dialect, account_id, [bucket]));
      await context.settle(dialect, REVOKE, revokeRequest(dialect, account_id, [bucket]));
      expect(await accounts()).not.toContain(account_id);
      expect(await accounts()).toContain(other);
      expect(await context.settle(dialect, GRANT, kept)).toMatchObject({ account_id: other });
    });

    it.each(context.dialects)('%s: what is not there is OK', async dialect => {
      const bucket = await context.madeBucket();
      await context.leavesNoTrace(async () => {
        await context.settle(dialect, REVOKE, revokeRequest(dialect, 'unknown', [bucket]));
        await context.settle(dialect, REVOKE, revokeRequest(dialect, 'other:vendor=id', ['other:vendor=bucket']));
      });
    });

    it.each(context.dialects)('%s: works after the bucket is gone', async dialect => {
      const bucket = await context.madeBucket();
      const request = grantRequest(dialect, context.access(), [[bucket, 'READ_WRITE']]);
      const { account_id } = await context.settle(dialect, GRANT, request);
      await context.settle(dialect, 'DriverDeleteBucket', { bucket_id: bucket });
      await context.settle(dialect, REVOKE, revokeRequest(dialect, account_id, [bucket]));
      expect(await accounts()).not.toContain(account_id);
    });

    it('a bucket that the account never had takes nothing away', async () => {
      const [had, other] = [await context.madeBucket(), await context.madeBucket()];
      const request = grantRequest('r1', context.access(), [[had, 'READ_WRITE']]);
      const first = await context.settle('r1', GRANT, request);
      await context.settle('v1alpha1', REVOKE, revokeRequest('v1alpha1', first.account_id, [other]));
      expect(await context.settle('r1', GRANT, request)).toEqual(first);
    });

    it('takes one bucket of several, and the account with its last one', async () => {
      const [one, two] = [await context.madeBucket(), await context.madeBucket()];
      const wishes = [[one, 'READ_WRITE'] as const, [two, 'READ_ONLY'] as const];
      const { account_id } = await context.settle('r1', GRANT, grantRequest('r1', context.access(), wishes));
      await context.settle('v1alpha1', REVOKE, revokeRequest('v1alpha1', account_id, [one]));
      expect(await accounts()).toContain(account_id);
      await context.settle('v1alpha1', REVOKE, revokeRequest('v1alpha1', account_id, [two]));
      expect(await accounts()).not.toContain(account_id);
    });

    it('v1alpha2 without buckets ends the whole account', async () => {
      const wishes = [
        [await context.madeBucket(), 'READ_WRITE'] as const,
        [await context.madeBucket(), 'READ_ONLY'] as const,
      ];
      const { account_id } = await context.settle('r1', GRANT, grantRequest('r1', context.access(), wishes));
      await context.settle('r1', REVOKE, revokeRequest('r1', account_id, []));
      expect(await accounts()).not.toContain(account_id);
    });

    it('a name is free again, for another request and with another key', async () => {
      const bucket = await context.madeBucket();
      const name = context.access();
      const first = await context.settle('r1', GRANT, grantRequest('r1', name, [[bucket, 'READ_WRITE']]));
      await context.settle('r1', REVOKE, revokeRequest('r1', first.account_id, [bucket]));
      const second = await context.settle('r1', GRANT, grantRequest('r1', name, [[bucket, 'READ_ONLY']]));
      expect(second.credentials.s3.access_secret_key).not.toBe(first.credentials.s3.access_secret_key);
    });

    it('v1alpha1: an empty account is OK and takes nothing away', async () => {
      const bucket = await context.madeBucket();
      await context.settle('v1alpha1', GRANT, grantRequest('v1alpha1', context.access(), [[bucket, 'READ_WRITE']]));
      await context.leavesNoTrace(async () => {
        await context.settle('v1alpha1', REVOKE, revokeRequest('v1alpha1', '', [bucket]));
        await context.settle('v1alpha1', REVOKE, revokeRequest('v1alpha1', '', []));
      });
    });

    it('refuses what can never be', async () => {
      const long = 'a'.repeat(2049);
      const cases = [
        ['v1alpha1', { account_id: 'x', bucket_id: '' }, 'bucket_id'],
        ['v1alpha1', { account_id: long, bucket_id: 'b' }, 'account_id'],
        ['r1', { account_id: '', buckets: [{ bucket_id: 'b' }] }, 'account_id'],
        ['r1', { account_id: long }, 'account_id'],
        ['r1', { account_id: 'x', buckets: [{ bucket_id: '' }] }, 'buckets\\[0\\].bucket_id'],
        ['r1', { account_id: 'x', protocol: { type: 77 } }, 'protocol'],
        ['r1', { account_id: 'x', authentication_type: { type: 77 } }, 'authentication_type'],
      ] as const;
      for (const [dialect, request, field] of cases) {
        await context.refuse(dialect, REVOKE, request, 'INVALID_ARGUMENT', new RegExp(`^${field}: `));
      }
    });
  });
}
