/** COSI on Google Cloud Storage, from the socket to what a key lets its holder do there, against the stand-in. */
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient, Reply } from '#test/cosi/client';
import { createRequest, grantRequest, type Mode, revokeRequest } from '#test/cosi/conformance/context';
import { v1alpha1Grant } from '#test/cosi/sidecar-checks';
import { type GcsHarness, gcsKeysOf, openGcsHarness, POOL } from '#test/object-backend/gcs-harness';
import { TestAppliance } from '#test/support/appliance';

/** v1alpha2 in its first and last revision. */
const REVISIONS = ['r1', 'r4'] as const;
const GCS = { type: 'GCS' };

describe('COSI on Google Cloud Storage', () => {
  let store: GcsHarness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let count = 0;
  const secrets: string[] = [];

  beforeAll(async () => {
    store = await openGcsHarness({ workloadIdentityPool: POOL });
    appliance = await TestAppliance.start({ backend: 'gcs', store: store.parts });
    client = appliance.client();
  });
  afterAll(async () => {
    await appliance?.close();
    await store?.close();
  });

  const newName = () => `${store.prefix}e${++count}`;
  const create = (name: string, parameters: Record<string, string> = {}, dialect: (typeof REVISIONS)[number] = 'r4') =>
    client.call(dialect, 'DriverCreateBucket', {
      ...createRequest(dialect, name, parameters),
      protocols: [GCS],
    });
  const grant = (name: string, buckets: [string, Mode][], dialect: (typeof REVISIONS)[number] = 'r4') =>
    client.call(dialect, 'DriverGrantBucketAccess', { ...grantRequest(dialect, name, buckets), protocol: GCS });
  const holderOf = (credentials: Reply) => {
    const keys = gcsKeysOf(credentials);
    secrets.push(keys.secretAccessKey);
    return store.clientFor(keys);
  };

  it('gives one key for several buckets what was asked for, once it works, and takes it away', async () => {
    const [own, read, write] = [newName(), newName(), newName()];
    for (const name of [own, read, write]) expect(await create(name)).toMatchObject({ code: 'OK' });
    await store.seedObjects(read, 1);
    // Google goes by what was before for so many questions.
    store.project.lag = 4;
    const { code, message, reply } = await grant('three', [
      [own, 'READ_WRITE'],
      [read, 'READ_ONLY'],
      [write, 'WRITE_ONLY'],
    ]);
    expect(code, message).toBe('OK');
    expect(store.project.lag).toBe(0);
    const holder = holderOf(reply.credentials);
    await holder.send(new PutObjectCommand({ Bucket: own, Key: 'mine', Body: 'x' }));
    await holder.send(new PutObjectCommand({ Bucket: own, Key: 'mine', Body: 'y' }));
    await holder.send(new DeleteObjectCommand({ Bucket: own, Key: 'mine' }));
    await holder.send(new PutObjectCommand({ Bucket: write, Key: 'mine', Body: 'x' }));
    expect((await holder.send(new ListObjectsV2Command({ Bucket: read }))).Contents).toHaveLength(1);
    for (const command of [
      new PutObjectCommand({ Bucket: read, Key: 'x', Body: 'x' }),
      new DeleteObjectCommand({ Bucket: read, Key: 'seed/0 & <more>' }),
      new GetObjectCommand({ Bucket: write, Key: 'mine' }),
      // What is there would be deleted: docs/buckets.md says so.
      new PutObjectCommand({ Bucket: write, Key: 'mine', Body: 'again' }),
    ])
      await expect(holder.send(command as PutObjectCommand)).rejects.toMatchObject({ name: 'AccessDenied' });
    store.project.lag = 4;
    const revoke = () =>
      client.call('r4', 'DriverRevokeBucketAccess', {
        ...revokeRequest('r4', reply.account_id, [own, read, write]),
        protocol: GCS,
      });
    for (let n = 0; n < 2; n++) expect(await revoke()).toMatchObject({ code: 'OK' });
    expect(store.project.lag).toBe(0);
    await expect(holder.send(new GetObjectCommand({ Bucket: own, Key: 'mine' }))).rejects.toMatchObject({
      name: 'SignatureDoesNotMatch',
    });
    for (const name of [own, read, write]) expect(await store.grants(name)).toEqual([]);
    expect(store.project.accounts.size).toBe(0);
  });

  it.each(REVISIONS)('serves %s by protocol GCS, and by S3 with the same kind of key', async revision => {
    const name = newName();
    const made = await create(name, {}, revision);
    expect(made, made.message).toMatchObject({ code: 'OK' });
    expect(made.reply.protocols).toEqual({ gcs: { project_id: store.project.id, bucket_name: name } });
    const first = await grant(`ba-${name}`, [[name, 'READ_WRITE']], revision);
    expect(first, first.message).toMatchObject({ code: 'OK' });
    expect(first.reply.credentials).toEqual({
      gcs: {
        access_id: expect.stringMatching(/^GOOG1E/),
        access_secret: expect.any(String),
        private_key_name: '',
        service_account: '',
      },
    });
    expect((await grant(`ba-${name}`, [[name, 'READ_WRITE']], revision)).reply).toEqual(first.reply);
    const other = await client.call(
      revision,
      'DriverGrantBucketAccess',
      grantRequest(revision, `s3-${name}`, [[name, 'READ_ONLY']]),
    );
    expect(other, other.message).toMatchObject({ code: 'OK' });
    expect(other.reply.credentials).toEqual({
      s3: { access_key_id: expect.stringMatching(/^GOOG1E/), access_secret_key: expect.any(String) },
    });
    expect(other.reply.buckets).toEqual([
      {
        bucket_id: name,
        bucket_info: {
          s3: { bucket_id: name, endpoint: store.server.endpoint, region: 'auto', addressing_style: { style: 'PATH' } },
        },
      },
    ]);
  });

  it('gives the sidecar of v1alpha1, which knows no credentials of GCS, those of S3', async () => {
    const name = newName();
    await client.call('v1alpha1', 'DriverCreateBucket', createRequest('v1alpha1', name));
    const granted = await client.call(
      'v1alpha1',
      'DriverGrantBucketAccess',
      grantRequest('v1alpha1', `ba-${name}`, [[name, 'READ_WRITE']]),
    );
    expect(granted, granted.message).toMatchObject({ code: 'OK' });
    expect(v1alpha1Grant(granted.reply)).toEqual([]);
    const { accessKeyID, accessSecretKey } = granted.reply.credentials.s3.secrets;
    const holder = store.clientFor({ accessKeyId: accessKeyID, secretAccessKey: accessSecretKey });
    await holder.send(new PutObjectCommand({ Bucket: name, Key: 'mine', Body: 'x' }));
  });

  describe('without a key', () => {
    const wish = (name: string, bucket: string, more: object = {}) => ({
      ...grantRequest('r1', name, [[bucket, 'READ_WRITE']]),
      protocol: GCS,
      authentication_type: { type: 'SERVICE_ACCOUNT' },
      service_account_name: 'uploader',
      parameters: { serviceAccountNamespace: 'shop' },
      ...more,
    });
    const ask = (request: object) => client.call('r1', 'DriverGrantBucketAccess', request);

    it('lets a service account of the cluster in as one of Google’s, and tells no secret', async () => {
      const bucket = newName();
      await create(bucket);
      const granted = await ask(wish('keyless', bucket));
      expect(granted, granted.message).toMatchObject({ code: 'OK' });
      const { account_id, credentials } = granted.reply;
      expect(account_id).toMatch(/^trivet-sa-[0-9a-f-]{36}$/);
      const account = [...store.project.accounts.values()].find(({ displayName }) => displayName === account_id)!;
      expect(credentials).toEqual({
        gcs: {
          access_id: '',
          access_secret: '',
          private_key_name: `projects/${store.project.id}/serviceAccounts/${account.email}`,
          service_account: account.email,
        },
      });
      expect((await ask(wish('keyless', bucket))).reply).toEqual(granted.reply);
      expect(await store.trustOf!(account_id)).toEqual({ namespace: 'shop', name: 'uploader' });
      expect(store.project.keysOf(account.email)).toEqual([]);
      expect(store.project.may(account.email, store.project.bucket(bucket), 'storage.objects.create')).toBe(true);
      const another = await ask(wish('keyless', bucket, { service_account_name: 'another' }));
      expect(another).toMatchObject({ code: 'ALREADY_EXISTS' });
      const revoked = await client.call('r1', 'DriverRevokeBucketAccess', {
        account_id,
        buckets: [{ bucket_id: bucket }],
      });
      expect(revoked, revoked.message).toMatchObject({ code: 'OK' });
      expect(store.project.accounts.has(account.email)).toBe(false);
      expect(await store.grants(bucket)).toEqual([]);
    });

    it('is refused where no token of Google’s would be taken, or Google takes no such name', async () => {
      const bucket = newName();
      await create(bucket);
      const accounts = [...store.project.accounts.keys()];
      for (const [more, named] of [
        [{ protocol: { type: 'S3' } }, 'protocol'],
        [{ parameters: {} }, 'serviceAccountNamespace'],
        [{ service_account_name: 'n'.repeat(120) }, 'longer than 127'],
      ] as const)
        expect(await ask(wish('refused', bucket, more))).toMatchObject({
          code: 'INVALID_ARGUMENT',
          message: expect.stringContaining(named),
        });
      expect([...store.project.accounts.keys()]).toEqual(accounts);
    });

    it('is refused to the sidecar of v1alpha1, which is told S3', async () => {
      const bucket = newName();
      await create(bucket);
      const accounts = [...store.project.accounts.keys()];
      const old = await client.call('v1alpha1', 'DriverGrantBucketAccess', {
        bucket_id: bucket,
        name: 'refused',
        authentication_type: 'IAM',
        parameters: { serviceAccountNamespace: 'shop', serviceAccountName: 'uploader' },
      });
      expect(old).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('use Key') });
      expect([...store.project.accounts.keys()]).toEqual(accounts);
    });
  });

  it('says what Google has not, and makes nothing', async () => {
    const bucket = newName();
    for (const [parameters, words] of [
      [{ quotaMaxSize: '1Gi' }, 'no quota'],
      [{ objectLock: 'true' }, 'object by object'],
      [{ placement: 'fast' }, 'Ceph alone'],
      [{ tags: 'Team=Blue' }, 'lower-case'],
      [{ kmsKey: 'alias/mine' }, 'cryptoKeys'],
    ] as const)
      expect(await create(bucket, parameters as never)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(words),
      });
    expect(await create('goog-bucket')).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await create('name.with.dots')).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(store.project.buckets.has(bucket)).toBe(false);
    expect(await create(bucket, { region: 'nowhere' })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('create bucket'),
    });
  });

  it('puts rights right that somebody took away, and issues another key for one that is gone', async () => {
    const bucket = newName();
    await create(bucket);
    const granted = await grant('healed', [[bucket, 'READ_WRITE']]);
    const { account_id: uid, credentials } = granted.reply;
    const stale = () => appliance.database.query('UPDATE trivet.access SET stale = true WHERE account_id = $1', [uid]);
    const { policy } = store.project.bucket(bucket);
    store.project.setPolicy(store.project.bucket(bucket), {
      version: 3,
      bindings: policy.bindings.filter(one => !one.condition),
    });
    await stale();
    expect((await grant('healed', [[bucket, 'READ_WRITE']])).reply).toEqual(granted.reply);
    expect(await store.grants(bucket)).toEqual([{ uid, mode: 'read_write' }]);
    const { accessKeyId } = gcsKeysOf(credentials);
    store.project.setKeyState(accessKeyId, 'INACTIVE');
    store.project.setKeyState(accessKeyId, 'DELETED');
    await stale();
    const anew = await grant('healed', [[bucket, 'READ_WRITE']]);
    expect(anew, anew.message).toMatchObject({ code: 'OK' });
    expect(anew.reply.account_id).toBe(uid);
    await holderOf(anew.reply.credentials).send(new PutObjectCommand({ Bucket: bucket, Key: 'mine', Body: 'x' }));
  });

  it('lets no secret, no token and not the key of its own account into its logs', () => {
    const log = appliance.processes.map(process => process.log()).join('');
    expect(secrets.length).toBeGreaterThan(1);
    const { private_key: key } = JSON.parse(store.parts.credentials.serviceAccountKey);
    for (const secret of [...secrets, key.split('\n')[1], 'Bearer ']) expect(log.includes(secret)).toBe(false);
  });
});
