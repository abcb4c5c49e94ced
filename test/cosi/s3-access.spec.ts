/** COSI on S3 with IAM, from the socket to what a key lets its holder do at a server that judges by the policies of users. */
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteBucketPolicyCommand,
  DeleteObjectCommand,
  GetBucketAclCommand,
  GetBucketEncryptionCommand,
  GetObjectAclCommand,
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  GetPublicAccessBlockCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketPolicyCommand,
  PutBucketTaggingCommand,
  PutBucketVersioningCommand,
  PutObjectAclCommand,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unleased } from '#platform/lease-signal';
import type { CosiClient, Dialect, Reply } from '#test/cosi/client';
import { accessedBucket } from '#test/cosi/conformance/context';
import { openS3Harness, type S3Harness, s3Parts } from '#test/object-backend/s3-harness';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const parts = s3Parts();
const DIALECTS = ['v1alpha1', 'r1', 'r4'] as const;
type Mode = 'READ_WRITE' | 'READ_ONLY' | 'WRITE_ONLY';
const PARAMETERS = { READ_WRITE: 'ReadWrite', READ_ONLY: 'ReadOnly', WRITE_ONLY: 'WriteOnly' } as const;

type Probe = (client: S3Client, Bucket: string) => Promise<unknown>;
const PROBES: Readonly<Record<string, Probe>> = {
  put: (client, Bucket) => client.send(new PutObjectCommand({ Bucket, Key: 'put', Body: 'x' })),
  'begin and abort an upload': async (client, Bucket) => {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'begun' }));
    return client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'begun', UploadId }));
  },
  get: (client, Bucket) => client.send(new GetObjectCommand({ Bucket, Key: 'theirs' })),
  head: (client, Bucket) => client.send(new HeadObjectCommand({ Bucket, Key: 'theirs' })),
  list: (client, Bucket) => client.send(new ListObjectsV2Command({ Bucket })),
  'list versions': (client, Bucket) => client.send(new ListObjectVersionsCommand({ Bucket })),
  delete: (client, Bucket) => client.send(new DeleteObjectCommand({ Bucket, Key: 'spare' })),
  'read the ACL of an object': (client, Bucket) => client.send(new GetObjectAclCommand({ Bucket, Key: 'theirs' })),
  'write the ACL of an object': (client, Bucket) =>
    client.send(new PutObjectAclCommand({ Bucket, Key: 'theirs', ACL: 'public-read' })),
  'read the ACL of the bucket': (client, Bucket) => client.send(new GetBucketAclCommand({ Bucket })),
  'write the policy': (client, Bucket) =>
    client.send(new PutBucketPolicyCommand({ Bucket, Policy: '{"Version":"2012-10-17","Statement":[]}' })),
  'delete the policy': (client, Bucket) => client.send(new DeleteBucketPolicyCommand({ Bucket })),
  'write the tags': (client, Bucket) =>
    client.send(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } })),
  'suspend versioning': (client, Bucket) =>
    client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Suspended' } })),
  'delete the bucket': (client, Bucket) => client.send(new DeleteBucketCommand({ Bucket })),
};
const WRITE = ['put', 'begin and abort an upload'];
const READ = ['get', 'head', 'list', 'list versions'];
const ALLOWED: Readonly<Record<Mode, readonly string[]>> = {
  READ_WRITE: [...WRITE, ...READ, 'delete'],
  READ_ONLY: READ,
  WRITE_ONLY: WRITE,
};
const KEY = { authentication_type: { type: 'KEY' }, protocol: { type: 'S3' } };

async function outcome(probe: Promise<unknown>): Promise<string> {
  try {
    await probe;
    return 'allowed';
  } catch (error) {
    const { $metadata, name } = error as { $metadata?: { httpStatusCode?: number }; name: string };
    return $metadata?.httpStatusCode === 403 ? 'refused' : `failed: ${name}`;
  }
}

describe.skipIf(!parts)('COSI on S3 with IAM', () => {
  let store: S3Harness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let count = 0;
  const secrets: string[] = [];

  beforeAll(async () => {
    store = await openS3Harness(parts!);
    appliance = await TestAppliance.start({ backend: 's3' });
    client = appliance.client();
  });
  afterAll(async () => {
    await appliance?.close();
    await store?.close();
  });

  const newName = () => `${store.prefix}e${++count}`;
  /** As sidecars repeat what is busy. */
  async function settle(dialect: Dialect, method: string, request: object): Promise<Reply> {
    const settled = await until(`${method} is answered`, async () => {
      const one = await client.call(dialect, method, request);
      return ['ABORTED', 'UNAVAILABLE'].includes(one.code) ? undefined : one;
    });
    expect(settled, settled.message).toMatchObject({ code: 'OK' });
    return settled.reply;
  }
  async function make(parameters: Record<string, string> = {}): Promise<string> {
    const name = newName();
    await settle('r1', 'DriverCreateBucket', { name, protocols: [{ type: 'S3' }], parameters });
    return name;
  }
  const wish = (dialect: Dialect, name: string, buckets: readonly string[], mode: Mode): object =>
    dialect === 'v1alpha1'
      ? { bucket_id: buckets[0], name, authentication_type: 'Key', parameters: { accessMode: PARAMETERS[mode] } }
      : { ...KEY, account_name: name, buckets: buckets.map(bucket => accessedBucket(dialect, bucket, mode)) };
  const grant = async (name: string, buckets: readonly string[], mode: Mode = 'READ_WRITE', dialect: Dialect = 'r1') =>
    settle(dialect, 'DriverGrantBucketAccess', wish(dialect, name, buckets, mode));
  function holderOf({ credentials }: Reply): S3Client {
    const { accessKeyID, accessSecretKey } = credentials.s3.secrets ?? {};
    const accessKeyId = accessKeyID ?? credentials.s3.access_key_id;
    const secretAccessKey = accessSecretKey ?? credentials.s3.access_secret_key;
    secrets.push(secretAccessKey);
    return store.clientFor({ accessKeyId, secretAccessKey });
  }
  const revoke = (account_id: string, buckets: readonly string[]) =>
    settle('r1', 'DriverRevokeBucketAccess', {
      ...KEY,
      account_id,
      buckets: buckets.map(bucket_id => ({ bucket_id })),
    });

  it.each(DIALECTS)('%s: gives a bucket and a key, the same on every repeat', async dialect => {
    const bucket = await make();
    const access = `ba-${bucket}`;
    const first = await grant(access, [bucket], 'READ_WRITE', dialect);
    expect(await grant(access, [bucket], 'READ_WRITE', dialect)).toEqual(first);
    expect(await outcome(PROBES.put!(holderOf(first), bucket))).toBe('allowed');
    expect(await store.principalKeys(first.account_id)).toHaveLength(1);
  });

  it.each(Object.keys(ALLOWED) as Mode[])('%s allows what it says, and nothing else', async mode => {
    const bucket = await make();
    for (const Key of ['theirs', 'spare'])
      await store.admin.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'z' }));
    const holder = holderOf(await grant(`ba-${bucket}`, [bucket], mode));
    const seen: Record<string, string> = {};
    for (const [name, probe] of Object.entries(PROBES)) seen[name] = await outcome(probe(holder, bucket));
    expect(seen).toEqual(
      Object.fromEntries(Object.keys(PROBES).map(name => [name, ALLOWED[mode].includes(name) ? 'allowed' : 'refused'])),
    );
  });

  it('ends one access with its user, and leaves the others', async () => {
    const bucket = await make();
    const [one, two] = [await grant(`ba-1-${bucket}`, [bucket]), await grant(`ba-2-${bucket}`, [bucket])];
    const [first, second] = [one, two].map(holderOf);
    await revoke(one.account_id, [bucket]);
    expect(await outcome(PROBES.put!(first!, bucket))).toBe('refused');
    expect(await outcome(PROBES.put!(second!, bucket))).toBe('allowed');
    expect(await store.users()).not.toContain(one.account_id);
    expect(await store.grants(bucket)).toEqual([{ uid: two.account_id, mode: 'read_write' }]);
  });

  it('opens two buckets by one key, and takes one of them', async () => {
    const buckets = [await make(), await make()];
    const both = await grant(`ba-${buckets[0]}`, buckets);
    const holder = holderOf(both);
    for (const bucket of buckets) expect(await outcome(PROBES.put!(holder, bucket))).toBe('allowed');
    await revoke(both.account_id, [buckets[0]!]);
    expect(await outcome(PROBES.put!(holder, buckets[0]!))).toBe('refused');
    expect(await outcome(PROBES.put!(holder, buckets[1]!))).toBe('allowed');
  });

  it('refuses more buckets than the policies of one user hold, and does nothing', async () => {
    const buckets = [await make(), await make(), await make(), await make()];
    const request = wish('r1', `ba-${buckets[0]}`, buckets, 'READ_WRITE');
    const refusal = await client.call('r1', 'DriverGrantBucketAccess', request);
    expect(refusal).toMatchObject({ code: 'RESOURCE_EXHAUSTED', message: expect.stringContaining('of 2048') });
    expect(await store.grants(buckets[0]!)).toEqual([]);
  });

  it('takes the rights on a bucket away when it goes, so that the next of its name is closed', async () => {
    const bucket = await make();
    const holder = holderOf(await grant(`ba-${bucket}`, [bucket]));
    await settle('r1', 'DriverDeleteBucket', { bucket_id: bucket });
    expect(await store.grants(bucket)).toEqual([]);
    await store.seedRegistrable!(bucket);
    expect(await outcome(PROBES.put!(holder, bucket))).toBe('refused');
  });

  it('makes a new key when somebody took the old one away', async () => {
    const bucket = await make();
    const access = `ba-${bucket}`;
    const first = await grant(access, [bucket]);
    await store.backend.removeKey({ uid: first.account_id, accessKeyId: '' }, unleased(AbortSignal.timeout(60_000)));
    await appliance.database.query('UPDATE trivet.access SET stale = true WHERE name = $1', [access]);
    const next = await grant(access, [bucket]);
    expect(next.account_id).toBe(first.account_id);
    expect(await outcome(PROBES.put!(holderOf(next), bucket))).toBe('allowed');
  });

  it('sets buckets up as their class says', async () => {
    const bucket = await make({
      objectLock: 'true',
      encryption: 'SSE-KMS',
      kmsKey: 'alias/ours',
      tags: 'team=blue',
      region: 'us-east-1',
    });
    expect(await store.bucketSpec(bucket)).toEqual({ versioning: true, tags: { team: 'blue' } });
    const Bucket = bucket;
    const { ObjectLockConfiguration } = await store.admin.send(new GetObjectLockConfigurationCommand({ Bucket }));
    expect(ObjectLockConfiguration?.ObjectLockEnabled).toBe('Enabled');
    const { ServerSideEncryptionConfiguration } = await store.admin.send(new GetBucketEncryptionCommand({ Bucket }));
    expect(ServerSideEncryptionConfiguration?.Rules?.[0]?.ApplyServerSideEncryptionByDefault).toEqual({
      SSEAlgorithm: 'aws:kms',
      KMSMasterKeyID: 'alias/ours',
    });
    const { PublicAccessBlockConfiguration } = await store.admin.send(new GetPublicAccessBlockCommand({ Bucket }));
    expect(Object.values(PublicAccessBlockConfiguration ?? {})).toEqual([true, true, true, true]);
  });

  it('refuses what S3 has not, and names it', async () => {
    const wrong = [
      { quotaMaxSize: '1Gi' },
      { placement: 'x' },
      { kmsKey: 'x' },
      { encryption: 'none' },
      { region: 'mars-1' },
    ];
    for (const parameters of wrong) {
      const refusal = await client.call('r1', 'DriverCreateBucket', { name: newName(), protocols: [], parameters });
      expect(refusal.code, refusal.message).toBe('INVALID_ARGUMENT');
      expect(refusal.message).toContain(Object.keys(parameters)[0]);
    }
  });

  it('leaves the bucket of another account alone', async () => {
    const name = newName();
    await store.seedForeignBucket(name);
    expect((await client.call('r1', 'DriverCreateBucket', { name, protocols: [] })).code).toBe('ALREADY_EXISTS');
    expect(await store.foreignBucketExists(name)).toBe(true);
  });

  it('leaves a bucket of its own account alone that somebody else made, filled or empty', async () => {
    const [filled, empty] = [newName(), newName()];
    for (const name of [filled, empty]) await store.seedRegistrable!(name);
    await store.seedObjects(filled, 1);
    for (const name of [filled, empty]) {
      expect((await client.call('r1', 'DriverCreateBucket', { name, protocols: [] })).code).toBe('ALREADY_EXISTS');
      expect(await store.foreignBucketExists(name)).toBe(true);
    }
  });

  it('keeps what is in a bucket, unless it was made to be purged', async () => {
    const [kept, purged] = [await make(), await make({ deletePolicy: 'purge' })];
    for (const name of [kept, purged]) await store.seedObjects(name, 3);
    const refusal = await client.call('r1', 'DriverDeleteBucket', { bucket_id: kept });
    expect(refusal.code).toBe('FAILED_PRECONDITION');
    await settle('r1', 'DriverDeleteBucket', { bucket_id: purged });
    expect(await store.foreignBucketExists(purged)).toBe(false);
    expect(await store.foreignBucketExists(kept)).toBe(true);
  });

  it('lets no secret into its logs', () => {
    const log = appliance.processes.map(process => process.log()).join('');
    expect(secrets.length).toBeGreaterThan(5);
    for (const secret of [parts!.secretAccessKey, ...secrets])
      for (const spelled of [secret, encodeURIComponent(secret)]) expect(log.includes(spelled)).toBe(false);
  });
});
