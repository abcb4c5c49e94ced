/** COSI on Garage, from the socket to what a key lets its holder do there. */
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient, Dialect } from '#test/cosi/client';
import { createRequest, grantRequest, type Mode, revokeRequest } from '#test/cosi/conformance/context';
import { type GarageHarness, openGarageHarness } from '#test/object-backend/garage-harness';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const DIALECTS: readonly Dialect[] = ['v1alpha1', 'r1', 'r4'];

describe('COSI on Garage', () => {
  let store: GarageHarness;
  let appliance: TestAppliance;
  let client: CosiClient;
  let count = 0;
  const secrets: string[] = [];

  beforeAll(async () => {
    store = await openGarageHarness();
    appliance = await TestAppliance.start({ backend: 'garage', store: store.parts });
    client = appliance.client();
  });
  afterAll(async () => {
    await appliance?.close();
    await store?.close();
  });

  const newName = () => `${store.prefix}e${++count}`;
  const create = (name: string, parameters: Record<string, string> = {}) =>
    client.call('r4', 'DriverCreateBucket', createRequest('r4', name, parameters));
  const grant = (name: string, buckets: [string, Mode][]) =>
    client.call('r4', 'DriverGrantBucketAccess', grantRequest('r4', name, buckets));
  function holderOf({ s3 }: { s3: { access_key_id: string; access_secret_key: string } }) {
    secrets.push(s3.access_secret_key);
    return store.clientFor({ accessKeyId: s3.access_key_id, secretAccessKey: s3.access_secret_key });
  }

  it('gives one key for several buckets what was asked for, and takes it away', async () => {
    const [own, read] = [newName(), newName()];
    for (const name of [own, read]) expect(await create(name)).toMatchObject({ code: 'OK' });
    await store.seedObjects(read, 1);
    const { code, message, reply } = await grant('both', [
      [own, 'READ_WRITE'],
      [read, 'READ_ONLY'],
    ]);
    expect(code, message).toBe('OK');
    expect(reply.credentials.s3).toMatchObject({
      access_key_id: expect.stringMatching(/^GK[0-9a-f]{24}$/),
      access_secret_key: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const holder = holderOf(reply.credentials);
    await holder.send(new PutObjectCommand({ Bucket: own, Key: 'mine', Body: 'x' }));
    await holder.send(new DeleteObjectCommand({ Bucket: own, Key: 'mine' }));
    expect((await holder.send(new ListObjectsV2Command({ Bucket: read }))).Contents).toHaveLength(1);
    for (const command of [
      new PutObjectCommand({ Bucket: read, Key: 'x', Body: 'x' }),
      new DeleteObjectCommand({ Bucket: read, Key: 'seed/0 & <more>' }),
    ])
      await expect(holder.send(command as PutObjectCommand)).rejects.toMatchObject({ name: 'AccessDenied' });
    const revoke = () =>
      client.call('r4', 'DriverRevokeBucketAccess', revokeRequest('r4', reply.account_id, [own, read]));
    for (let n = 0; n < 2; n++) expect(await revoke()).toMatchObject({ code: 'OK' });
    await expect(holder.send(new GetObjectCommand({ Bucket: own, Key: 'mine' }))).rejects.toMatchObject({
      name: 'AccessDenied',
    });
    for (const name of [own, read]) expect(await store.grants(name)).toEqual([]);
  });

  it('says what Garage has not, and makes nothing', async () => {
    const bucket = newName();
    for (const [parameter, words] of [
      ['versioning', 'no versions'],
      ['tags', 'no tags'],
      ['placement', 'layout'],
    ] as const)
      expect(await create(bucket, { [parameter]: 'true' })).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(words),
      });
    expect(await store.holdsBucket(bucket)).toBe(false);
    expect(await create(bucket, { quotaMaxObjects: '1' })).toMatchObject({ code: 'OK' });
    expect(await store.bucketSpec(bucket)).toMatchObject({ quotaMaxObjects: '1' });
    const keys = await store.admin.get('ListKeys');
    expect(await grant('writer', [[bucket, 'WRITE_ONLY']])).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('write only cannot be had'),
    });
    expect(await store.admin.get('ListKeys')).toEqual(keys);
  });

  it.each(DIALECTS)('serves %s', async dialect => {
    const name = newName();
    const made = await client.call(dialect, 'DriverCreateBucket', createRequest(dialect, name));
    expect(made, made.message).toMatchObject({ code: 'OK' });
    const request = grantRequest(dialect, `ba-${name}`, [[name, 'READ_WRITE']]);
    const first = await client.call(dialect, 'DriverGrantBucketAccess', request);
    expect(first, first.message).toMatchObject({ code: 'OK' });
    expect((await client.call(dialect, 'DriverGrantBucketAccess', request)).reply).toEqual(first.reply);
  });

  it('puts rights right that somebody took away, and says so of a key that never comes back', async () => {
    const bucket = newName();
    await create(bucket);
    const granted = await grant('healed', [[bucket, 'READ_WRITE']]);
    const { account_id: uid, credentials } = granted.reply;
    const id = credentials.s3.access_key_id;
    const permissions = { read: true, write: true };
    const { id: bucketId } = await store.admin.get('GetBucketInfo', { globalAlias: bucket });
    await store.admin.post('DenyBucketKey', { bucketId, accessKeyId: id, permissions });
    expect(await store.grants(bucket)).toEqual([]);
    const stale = () => appliance.database.query('UPDATE trivet.access SET stale = true WHERE account_id = $1', [uid]);
    await stale();
    expect((await grant('healed', [[bucket, 'READ_WRITE']])).reply).toEqual(granted.reply);
    expect(await store.grants(bucket)).toEqual([{ uid, mode: 'read_write' }]);
    await store.admin.post('DeleteKey', {}, { id });
    await stale();
    expect(await grant('healed', [[bucket, 'READ_WRITE']])).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('trivet access rotate'),
    });
    // As it says.
    await until(
      'the key is another one',
      async () => {
        await appliance.database.query(
          `UPDATE trivet.access SET rotate_at = now(), desired = desired || '{"rotation": {"afterSeconds": 7200, "graceSeconds": 3600}}'
            WHERE account_id = $1 AND key_operation IS NULL AND former_until IS NULL AND state = 'ready'`,
          [uid],
        );
        const keys = await store.principalKeys(uid);
        return keys?.length === 1 && keys[0]!.accessKeyId !== id;
      },
      30_000,
    );
    // It is known to be wrong still, so the next Grant puts its rights right before it answers.
    const anew = await grant('healed', [[bucket, 'READ_WRITE']]);
    expect(anew, anew.message).toMatchObject({ code: 'OK' });
    await holderOf(anew.reply.credentials).send(new PutObjectCommand({ Bucket: bucket, Key: 'mine', Body: 'x' }));
  });

  it('lets no secret, and not the token of the admin API, into its logs', () => {
    const log = appliance.processes.map(process => process.log()).join('');
    expect(secrets.length).toBeGreaterThan(1);
    const { adminToken, secretAccessKey } = store.parts.credentials;
    for (const secret of [...secrets, adminToken, secretAccessKey]) expect(log.includes(secret!)).toBe(false);
  });
});
