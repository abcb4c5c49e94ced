import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALL_DIALECTS, type Dialect } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** A suspended tenant, or door, answers nothing: not what is true already, and not even that nothing is there. */
let appliance: TestAppliance;
let accountId: string;
beforeAll(async () => {
  // The socket stays open for these tests: until it is closed, calls are refused one by one.
  appliance = await TestAppliance.start({ backend: 'fake', env: { TRIVET_ENDPOINT_CHECK_MS: '3600000' } });
  const client = appliance.client();
  expect(await client.call('v1alpha1', 'DriverCreateBucket', { name: 'photos' })).toMatchObject({ code: 'OK' });
  const granted = await client.call('v1alpha1', 'DriverGrantBucketAccess', GRANT);
  accountId = granted.reply.account_id;
});
afterAll(() => appliance?.close());

const GRANT = { bucket_id: 'photos', name: 'ba', authentication_type: 'Key' };
const S3 = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };

const calls = (dialect: Dialect): [method: string, request: object][] => {
  if (dialect === 'v1alpha1')
    return [
      ['DriverCreateBucket', { name: 'photos' }],
      ['DriverCreateBucket', { name: 'new' }],
      ['DriverDeleteBucket', { bucket_id: 'photos' }],
      ['DriverDeleteBucket', { bucket_id: 'unknown' }],
      ['DriverGrantBucketAccess', GRANT],
      ['DriverRevokeBucketAccess', { bucket_id: 'photos', account_id: accountId }],
      ['DriverRevokeBucketAccess', { bucket_id: 'photos', account_id: 'unknown' }],
    ];
  const get = dialect === 'r1' ? 'DriverGetExistingBucket' : 'DriverGetBucket';
  const existing = get === 'DriverGetBucket' ? { bucket_id: 'photos' } : { existing_bucket_id: 'photos' };
  const mode =
    dialect === 'r1' || dialect === 'r2'
      ? { access_mode: { mode: 'READ_WRITE' } }
      : { object_data_access_mode: { mode: 'READ_WRITE' } };
  return [
    ['DriverCreateBucket', dialect === 'r4' ? { bucket_id: 'photos' } : { name: 'photos' }],
    [get, existing],
    ['DriverDeleteBucket', { bucket_id: 'photos' }],
    ['DriverGrantBucketAccess', { ...S3, account_name: 'ba-2', buckets: [{ bucket_id: 'photos', ...mode }] }],
    ['DriverRevokeBucketAccess', { ...S3, account_id: accountId, buckets: [{ bucket_id: 'photos' }] }],
  ];
};

describe.each(['tenant', 'endpoint'])('a suspended %s', table => {
  beforeAll(() => appliance.database.query(`UPDATE trivet.${table} SET state = 'suspended'`));
  afterAll(() => appliance.database.query(`UPDATE trivet.${table} SET state = 'active'`));

  it.each(ALL_DIALECTS)('gets PERMISSION_DENIED for every call of %s', async dialect => {
    const client = appliance.client();
    const operations = (await appliance.operations()).length;
    for (const [method, request] of calls(dialect)) {
      const outcome = await client.call(dialect, method, request);
      expect(`${method} ${outcome.code}`, outcome.message).toBe(`${method} PERMISSION_DENIED`);
      expect(outcome.reply).toBeUndefined();
    }
    expect((await appliance.operations()).length).toBe(operations);
    expect(appliance.fake!.keys(accountId)).toHaveLength(1);
  });

  it('still tells who it is, which nobody must be asked for', async () => {
    expect(await appliance.client().call('v1alpha1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
  });
});

it('serves again once it is active', async () => {
  const client = appliance.client();
  expect(await client.call('v1alpha1', 'DriverGrantBucketAccess', GRANT)).toMatchObject({
    reply: { account_id: accountId },
  });
  const request = { bucket_id: 'photos', account_id: accountId };
  expect(await client.call('v1alpha1', 'DriverRevokeBucketAccess', request)).toMatchObject({ code: 'OK' });
});

it.each(['tenant', 'endpoint'])('the socket of a suspended %s is closed, and opened again afterwards', async table => {
  const other = await TestAppliance.start({ backend: 'fake', env: { TRIVET_ENDPOINT_CHECK_MS: '100' } });
  try {
    const client = other.client();
    const create = async () => (await client.call('v1alpha1', 'DriverCreateBucket', { name: 'photos' })).code;
    expect(await create()).toBe('OK');
    await other.database.query(`UPDATE trivet.${table} SET state = 'suspended'`);
    await until('the socket is gone', () => !existsSync(other.socketPath));
    expect(await create()).toBe('UNAVAILABLE');
    await other.database.query(`UPDATE trivet.${table} SET state = 'active'`);
    await until('it is served again', async () => (await create()) === 'OK');
  } finally {
    await other.close();
  }
});
