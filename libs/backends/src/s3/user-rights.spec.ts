import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import type { AccessMode } from '#backends/object-backend';
import { ALLOWED, DENIED as DENIED_AT_BUCKETS } from '#backends/s3/bucket-policy';
import { translate } from '#backends/s3/errors';
import { needing } from '#backends/s3/needed-rights';
import { actionOf } from '#backends/s3/s3-actions';
import { S3_WORDS } from '#backends/s3/s3-words';
import { DENIED, MAX_RIGHTS_BYTES, rightsBytes } from '#backends/s3/user-rights';

const MODES: AccessMode[] = ['read_write', 'read_only', 'write_only'];
const matches = (pattern: string, action: string): boolean =>
  new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(action.replaceAll('*', 'Any'));

describe('rights of a user', () => {
  it.each(MODES)('%s denies by patterns what policies of buckets deny, and nothing that it allows', mode => {
    const isDenied = (action: string) => DENIED[mode].some(pattern => matches(pattern, action));
    expect(DENIED_AT_BUCKETS[mode].filter(action => !isDenied(action))).toEqual([]);
    expect(ALLOWED[mode].filter(isDenied)).toEqual([]);
  });

  it('has room for two buckets of the longest names, and three of short ones', () => {
    const of = (count: number, length: number) =>
      rightsBytes(Array.from({ length: count }, () => ({ bucket: 'b'.repeat(length), mode: 'read_write' as const })));
    expect(of(2, 63)).toBeLessThanOrEqual(MAX_RIGHTS_BYTES);
    expect(of(3, 10)).toBeLessThanOrEqual(MAX_RIGHTS_BYTES);
    expect(of(3, 63)).toBeGreaterThan(MAX_RIGHTS_BYTES);
  });
});

describe('what S3 and IAM answer', () => {
  const context = {
    doing: 'make principal p',
    resource: 'principal p',
    readOnly: false,
    signal: new AbortController().signal,
  };
  const said = (status: number, Code: string, message = '') =>
    translate(Object.assign(new Error(message), { Code, $metadata: { httpStatusCode: status } }), context, S3_WORDS);

  it.each([
    [400, 'Throttling', 'aborted'],
    [503, 'SlowDown', 'aborted'],
    [503, 'ServiceUnavailable', 'unavailable'],
    [403, 'InvalidClientTokenId', 'unauthenticated'],
    [403, 'ExpiredToken', 'unauthenticated'],
    [409, 'LimitExceeded', 'resource_exhausted'],
    [409, 'BucketAlreadyExists', 'already_exists'],
    [301, 'PermanentRedirect', 'failed_precondition'],
  ] as const)('%i %s is %3$s', (status, code, kind) => {
    expect(said(status, code)).toMatchObject({ kind, message: expect.stringContaining(code) });
  });

  it('names the right that is missing, where the store says it', () => {
    const words = 'User: arn:aws:iam::1:user/t is not authorized to perform: iam:CreateUser on resource: x';
    expect(said(403, 'AccessDenied', words).message).toContain('Trivet needs the right iam:CreateUser');
    expect(said(403, 'AccessDenied').message).toContain('docs/buckets.md');
  });

  it('names the right that the request needed, where the store does not say it', async () => {
    const refused = Object.assign(new Error('Access Denied'), {
      Code: 'AccessDenied',
      $metadata: { httpStatusCode: 403 },
    });
    const command = new ListObjectsV2Command({ Bucket: 'photos' });
    await expect(needing(actionOf(command), Promise.reject(refused))).rejects.toBe(refused);
    expect(translate(refused, context, S3_WORDS).message).toContain('Trivet needs the right s3:ListBucket');
  });
});
