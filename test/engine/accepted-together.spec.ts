import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** What is accepted while other work of the same bucket or account waits must not be lost in that work. */
let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.create({ backend: 'fake' });
  await appliance.gateway();
});
afterAll(() => appliance?.close());

/**
 * The ring of who was accepted first is heard before a round dispatches the other: order binds at an operation's own
 * resource alone, and whichever of two calls under way runs last has the last word.
 */
const LATE_ROUNDS = { TRIVET_RECONCILE_MS: '1000' };

const waiting = (kind: string) =>
  until(`${kind} is accepted`, async () => (await appliance.operations(`kind = '${kind}'`)).length > 0);

it('a Grant that comes while a registered bucket is let go of has its statement when it is answered', async () => {
  appliance.fake!.seedForeignBucket('brown');
  await appliance.database.query(
    `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
     SELECT tenant_id, gen_random_uuid(), backend_id, 'brown', 'registered', 'ready',
            '{"v": 1, "protocols": ["s3"], "spec": {"deletePolicy": "retain"}}', '\\x00'
       FROM trivet.endpoint`,
  );
  const client = appliance.client();
  const released = client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id: 'brown' });
  await waiting('bucket.release');
  const request = { name: 'ba-brown', bucket_id: 'brown', parameters: {}, authentication_type: 'Key' };
  const granted = client.call('v1alpha1', 'DriverGrantBucketAccess', request);
  await waiting('access.grant');
  await appliance.worker(LATE_ROUNDS);
  expect(await released).toMatchObject({ code: 'OK' });
  const { code, reply } = await granted;
  expect(code).toBe('OK');
  expect(appliance.fake!.grants('brown')).toEqual([{ uid: reply.account_id, mode: 'read_write' }]);

  // The same when it has it already, and is only put right.
  await appliance.process('worker').stop();
  await appliance.database.query("UPDATE trivet.access SET stale = true WHERE name = 'ba-brown'");
  const pending = (kind: string) =>
    until(`${kind} waits`, async () => (await appliance.operations(`kind = '${kind}' AND state = 'pending'`))[0]);
  const again = client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id: 'brown' });
  await pending('bucket.release');
  const healed = client.call('v1alpha1', 'DriverGrantBucketAccess', request);
  await pending('access.grant');
  await appliance.worker(LATE_ROUNDS);
  expect(await again).toMatchObject({ code: 'OK' });
  expect(await healed).toMatchObject({ code: 'OK', reply });
  expect(appliance.fake!.grants('brown')).toEqual([{ uid: reply.account_id, mode: 'read_write' }]);
});

it('an account that loses its buckets one by one is gone with the last, also if one of them was deleted', async () => {
  const client = appliance.client();
  for (const name of ['one', 'two'])
    expect(await client.call('v1alpha1', 'DriverCreateBucket', { name })).toMatchObject({ code: 'OK' });
  const many = { protocol: { type: 'S3' }, authentication_type: { type: 'KEY' } };
  const granted = await client.call('r1', 'DriverGrantBucketAccess', {
    account_name: 'ba-many',
    ...many,
    buckets: ['one', 'two'].map(bucket_id => ({ bucket_id, access_mode: { mode: 'READ_WRITE' } })),
  });
  expect(granted).toMatchObject({ code: 'OK' });
  const account_id = granted.reply.account_id;
  expect(await client.call('r1', 'DriverDeleteBucket', { bucket_id: 'one' })).toMatchObject({ code: 'OK' });
  for (const bucket_id of ['one', 'two'])
    expect(
      await client.call('r1', 'DriverRevokeBucketAccess', { account_id, ...many, buckets: [{ bucket_id }] }),
    ).toMatchObject({ code: 'OK' });
  expect(appliance.fake!.principals().map(({ uid }) => uid)).not.toContain(account_id);
});
