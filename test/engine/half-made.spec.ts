import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { programFile } from '#platform/package-root';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

let appliance: TestAppliance;
let client: CosiClient;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake' });
  client = appliance.client();
});
afterAll(() => appliance?.close());

const states = async (name: string) =>
  (await appliance.database.query<{ state: string }>('SELECT state FROM trivet.bucket WHERE name = $1', [name])).map(
    ({ state }) => state,
  );

it('a bucket that was never finished and cannot be deleted waits for a person, and is not called ready', async () => {
  const name = 'half-made';
  const fault = { method: 'configureBucket', mode: 'fail-after', error: 'permission_denied', count: 1_000 } as const;
  appliance.fake!.addFault(fault);
  const create = () => client.call('r1', 'DriverCreateBucket', { name, protocols: [{ type: 'S3' }] });
  expect((await create()).code).toBe('PERMISSION_DENIED');
  appliance.fake!.seedObjects(name, 1);
  const refused = await client.call('r1', 'DriverDeleteBucket', { bucket_id: name });
  expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('operator') });
  expect(await states(name)).toEqual(['deleting']);

  appliance.fake!.clearFaults();
  appliance.fake!.seedObjects(name, 0);
  const [parked] = await appliance.operations("state = 'needs_attention'");
  const main = programFile('trivet');
  await promisify(execFile)(process.execPath, [main, 'operation', 'retry', parked!.id, '--offline'], {
    env: { PATH: '/usr/bin:/bin', ...appliance.env },
  });
  await until('the deletion ends', async () => (await states(name)).every(state => state === 'gone'));
  expect(appliance.fake!.bucket(name)).toBeUndefined();
  expect((await create()).code).toBe('OK');
});

it('forgets what has been gone for 30 days, and nothing that lives, went yesterday, or is referred to', async () => {
  const aged = (name: string, state: string, days: number) =>
    appliance.database.query(
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint, updated_at)
       SELECT tenant_id, gen_random_uuid(), backend_id, $1, 'created', $2, '{"v": 1, "protocols": ["s3"], "spec": {}}',
              '\\x00', now() - $3 * interval '1 day' FROM trivet.endpoint`,
      [name, state, days],
    );
  await aged('old-gone', 'gone', 31);
  await aged('new-gone', 'gone', 29);
  await aged('old-alive', 'ready', 31);
  await aged('old-held', 'gone', 31);
  await appliance.database.query(
    `WITH holder AS (
       INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
       SELECT tenant_id, gen_random_uuid(), backend_id, 'holder', 'holder', 'ready', '{}', 'x' FROM trivet.endpoint
       RETURNING tenant_id, id)
     INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
     SELECT tenant_id, holder.id, b.id, 'read_write', 'wanted' FROM holder JOIN trivet.bucket b USING (tenant_id)
      WHERE b.name = 'old-held'`,
  );
  // Once an hour, and at the start of a worker.
  await appliance.worker();
  await until('the old one is forgotten', async () => (await states('old-gone')).length === 0);
  for (const name of ['new-gone', 'old-held']) expect(await states(name)).toEqual(['gone']);
  expect(await states('old-alive')).toEqual(['ready']);
});

it('an account that loses its buckets one by one is gone with the last, also if one of them was deleted', async () => {
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
