import { randomBytes } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutBucketPolicyCommand,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPolicy } from '#backends/rgw/bucket-grants';
import { unleased } from '#platform/lease-signal';
import { importBucket } from '#test/cosi/appliance-target';
import type { CosiClient, Reply } from '#test/cosi/client';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';
import { TestAppliance } from '#test/support/appliance';

/** A workload with what COSI handed out, and the stock SDK. */
function workload({ credentials, buckets }: Reply): S3Client {
  const { endpoint, region } = buckets[0].bucket_info.s3;
  return new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    credentials: { accessKeyId: credentials.s3.access_key_id, secretAccessKey: credentials.s3.access_secret_key },
  });
}

const refusal = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'allowed',
    error => error.name,
  );

describe('the main job on a real RGW', () => {
  let appliance: TestAppliance;
  let client: CosiClient;
  /** Looks at the store past the appliance, and has a user that is a stranger to it. */
  let store: RgwHarness;
  const prefix = `e2e-${randomBytes(4).toString('hex')}`;
  const granted: { account: string; buckets: string[] }[] = [];
  const created: string[] = [];

  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'rgw' });
    client = appliance.client();
    store = await openRgwHarness(rgwParts()!);
  });
  afterAll(async () => {
    for (const { account, buckets } of granted) await revoke(account, buckets);
    for (const bucket of created) await call('DriverDeleteBucket', { bucket_id: bucket });
    await appliance?.close();
    await store?.close();
  });

  async function call(method: string, request: object): Promise<Reply> {
    const { code, message, reply } = await client.call('r1', method, request);
    expect(code, `${method}: ${message}\n${code === 'OK' ? '' : appliance.process('worker').log().slice(-3_000)}`).toBe(
      'OK',
    );
    return reply;
  }
  async function create(name: string, parameters: Record<string, string> = {}): Promise<string> {
    const bucket = `${prefix}-${name}`;
    await call('DriverCreateBucket', {
      name: bucket,
      protocols: [{ type: 'S3' }],
      parameters: { deletePolicy: 'purge', ...parameters },
    });
    created.push(bucket);
    return bucket;
  }
  async function grant(name: string, buckets: Record<string, string>): Promise<Reply> {
    const reply = await call('DriverGrantBucketAccess', {
      account_name: `${prefix}-${name}`,
      protocol: { type: 'S3' },
      authentication_type: { type: 'KEY' },
      buckets: Object.entries(buckets).map(([bucket_id, mode]) => ({ bucket_id, access_mode: { mode } })),
    });
    granted.push({ account: reply.account_id, buckets: Object.keys(buckets) });
    return reply;
  }
  const revoke = (account_id: string, buckets: string[]): Promise<Reply> =>
    call('DriverRevokeBucketAccess', {
      account_id,
      protocol: { type: 'S3' },
      authentication_type: { type: 'KEY' },
      buckets: buckets.map(bucket_id => ({ bucket_id })),
    });

  /** As its owner reads it. */
  async function policyOf(bucket: string): Promise<string | undefined> {
    const signal = unleased(AbortSignal.timeout(30_000));
    const { owner } = (await store.admin.getBucket(bucket, signal))!;
    const [key] = (await store.principalKeys(owner))!;
    return readPolicy(await store.userOf(store.clientFor(key!)), bucket, signal);
  }

  it('reads and writes with what was granted, until it is revoked', async () => {
    const bucket = await create('photos');
    const reply = await grant('app', { [bucket]: 'READ_WRITE' });
    const s3 = workload(reply);
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: 'hello' }));
    const read = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'a' }));
    expect(await read.Body!.transformToString()).toBe('hello');

    await revoke(reply.account_id, [bucket]);
    expect(await refusal(s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'a' })))).toBe('InvalidAccessKeyId');
    expect(await store.principalKeys(reply.account_id)).toBeUndefined();
    expect(await policyOf(bucket)).toBeUndefined();
  });

  it('serves a bucket that exists already by both packages, and leaves it as it was', async () => {
    const bucket = `${store.prefix}brown`;
    await store.seedForeignBucket(bucket);
    const own = {
      Version: '2012-10-17',
      Statement: [
        {
          Sid: 'theirs',
          Effect: 'Allow',
          Principal: { AWS: [`arn:aws:iam:::user/${store.foreignUid}`] },
          Action: ['s3:ListBucket'],
          Resource: [`arn:aws:s3:::${bucket}`],
        },
      ],
    };
    await store.foreignClient.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: JSON.stringify(own) }));
    await store.foreignClient.send(new PutObjectCommand({ Bucket: bucket, Key: 'old', Body: 'theirs' }));
    const unregistered = { existing_bucket_id: bucket, protocols: [{ type: 'S3' }] };
    expect(await client.call('r1', 'DriverGetExistingBucket', unregistered)).toMatchObject({ code: 'NOT_FOUND' });
    await importBucket(appliance, bucket);

    const found = await call('DriverGetExistingBucket', unregistered);
    expect(found).toMatchObject({ bucket_id: bucket, protocols: { s3: { bucket_id: bucket } } });
    const byPlainId = { bucket_id: bucket, name: `${prefix}-plain`, authentication_type: 'Key' };
    const reader = { ...byPlainId, parameters: { accessMode: 'ReadOnly' } };
    const old = await client.call('v1alpha1', 'DriverGrantBucketAccess', reader);
    expect(old, old.message).toMatchObject({ code: 'OK' });
    const { accessKeyID, accessSecretKey } = old.reply.credentials.s3.secrets;
    const plain = store.clientFor({ accessKeyId: accessKeyID, secretAccessKey: accessSecretKey });
    const writer = await grant('brown', { [bucket]: 'WRITE_ONLY' });
    const put = (s3: S3Client) => refusal(s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'new', Body: 'x' })));
    const read = (s3: S3Client) => refusal(s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'old' })));
    expect([await read(plain), await put(plain)]).toEqual(['allowed', 'AccessDenied']);
    expect([await read(workload(writer)), await put(workload(writer))]).toEqual(['AccessDenied', 'allowed']);
    expect(JSON.parse((await policyOf(bucket))!).Statement[0]).toEqual(own.Statement[0]);

    await call('DriverDeleteBucket', { bucket_id: bucket });
    expect([await read(plain), await put(workload(writer))]).toEqual(['AccessDenied', 'AccessDenied']);
    const ended = { bucket_id: bucket, account_id: old.reply.account_id };
    expect(await client.call('v1alpha1', 'DriverRevokeBucketAccess', ended)).toMatchObject({ code: 'OK' });
    await revoke(writer.account_id, [bucket]);
    for (const account of [ended.account_id, writer.account_id])
      expect(await store.principalKeys(account)).toBeUndefined();
    expect(JSON.parse((await policyOf(bucket))!)).toEqual(own);
    expect(await read(store.foreignClient)).toBe('allowed');
  });

  it('keeps two grants apart, and modes per bucket under one key', async () => {
    const [mine, other, shared] = [await create('mine'), await create('other'), await create('shared')];
    const writer = workload(await grant('writer', { [mine]: 'READ_WRITE', [shared]: 'WRITE_ONLY' }));
    const reader = workload(await grant('reader', { [other]: 'READ_WRITE', [shared]: 'READ_ONLY' }));
    await writer.send(new PutObjectCommand({ Bucket: shared, Key: 'a', Body: 'x' }));
    expect(await refusal(writer.send(new GetObjectCommand({ Bucket: shared, Key: 'a' })))).toBe('AccessDenied');
    expect(await refusal(writer.send(new ListObjectsV2Command({ Bucket: shared })))).toBe('AccessDenied');
    expect(await refusal(reader.send(new PutObjectCommand({ Bucket: shared, Key: 'b', Body: 'x' })))).toBe(
      'AccessDenied',
    );
    expect(await refusal(reader.send(new ListObjectsV2Command({ Bucket: shared })))).toBe('allowed');
    expect(await refusal(writer.send(new ListObjectsV2Command({ Bucket: other })))).toBe('AccessDenied');
    expect(await refusal(reader.send(new ListObjectsV2Command({ Bucket: mine })))).toBe('AccessDenied');
  });

  it('loses nothing of 20 grants on one bucket at once', async () => {
    const bucket = await create('popular');
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => grant(`many-${n}`, { [bucket]: n % 2 ? 'READ_WRITE' : 'READ_ONLY' })),
    );
    const results = await Promise.all(
      replies.map(reply => refusal(workload(reply).send(new ListObjectsV2Command({ Bucket: bucket })))),
    );
    expect(results).toEqual(replies.map(() => 'allowed'));
  });

  it('answers repeats alike after a restart of everything', async () => {
    const bucket = await create('stable');
    const before = await grant('stable', { [bucket]: 'READ_WRITE' });
    await Promise.all(appliance.processes.map(process => process.stop('SIGKILL')));
    await Promise.all([appliance.gateway(), appliance.worker()]);
    const after = await grant('stable', { [bucket]: 'READ_WRITE' });
    expect(after).toEqual(before);
    const s3 = workload(after);
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: 'x' }));
  });

  it('purges versions, markers and unfinished uploads', async () => {
    const bucket = await create('versions', { versioning: 'true' });
    const reply = await grant('versions', { [bucket]: 'READ_WRITE' });
    const s3 = workload(reply);
    for (let n = 0; n < 3; n++) await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: `${n}` }));
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: 'big' }));
    expect(UploadId).toBeTruthy();
    await call('DriverDeleteBucket', { bucket_id: bucket });
    expect(await refusal(s3.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key: 'big', UploadId })))).toBe(
      'NoSuchBucket',
    );
  });

  it('keeps what is not empty', async () => {
    const bucket = await create('kept', { deletePolicy: 'retain' });
    const s3 = workload(await grant('kept', { [bucket]: 'READ_WRITE' }));
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: 'x' }));
    const refused = await client.call('r1', 'DriverDeleteBucket', { bucket_id: bucket });
    expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(bucket) });
    await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: 'a' }));
  });

  it('keeps what is locked, although it was made to be purged, and names the object', async () => {
    const bucket = await create('locked', { objectLock: 'true' });
    const s3 = workload(await grant('locked', { [bucket]: 'READ_WRITE' }));
    const hold = (Status: 'ON' | 'OFF') =>
      s3.send(new PutObjectLegalHoldCommand({ Bucket: bucket, Key: 'evidence', LegalHold: { Status } }));
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'evidence', Body: 'x' }));
    await hold('ON');
    const refused = await client.call('r1', 'DriverDeleteBucket', { bucket_id: bucket });
    expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('evidence') });
    const read = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'evidence' }));
    expect(await read.Body!.transformToString()).toBe('x');
    await hold('OFF');
  });

  it('enforces quota at the store', async () => {
    const bucket = await create('small', { quotaMaxObjects: '1' });
    const s3 = workload(await grant('small', { [bucket]: 'READ_WRITE' }));
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a', Body: 'x' }));
    expect(await refusal(s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'b', Body: 'x' })))).toBe('QuotaExceeded');
  });
});
