import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** Invariant E3: the fast path vouches for what the backend has; now and then somebody must look. */
describe('the audit', () => {
  let appliance: TestAppliance;
  let client: CosiClient;
  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'fake', env: { TRIVET_AUDIT_MS: '100' } });
    client = appliance.client();
  });
  afterAll(() => appliance?.close());

  const create = (name: string) => client.call('r1', 'DriverCreateBucket', { name, protocols: [{ type: 'S3' }] });
  const remove = (name: string) => client.call('r1', 'DriverDeleteBucket', { bucket_id: name });
  const code = async (call: Promise<{ code: string }>) => (await call).code;

  it('stops vouching for a bucket that was removed behind our back, and lets its name go by Delete', async () => {
    expect(await code(create('lost'))).toBe('OK');
    expect(await code(create('kept'))).toBe('OK');
    appliance.fake!.dropBucket('lost');
    const refused = await until('the loss is seen', async () => {
      const outcome = await create('lost');
      return outcome.code === 'OK' ? undefined : outcome;
    });
    expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('no longer has') });
    expect(await code(client.call('r1', 'DriverGetExistingBucket', { existing_bucket_id: 'lost' }))).toBe('NOT_FOUND');
    expect(await code(create('kept'))).toBe('OK');
    expect(await code(remove('lost'))).toBe('OK');
    expect(await code(create('lost'))).toBe('OK');
    expect(appliance.fake!.bucket('lost')).toBeDefined();
  });

  it('says when another bucket has taken the name, and never deletes that one', async () => {
    expect(await code(create('taken'))).toBe('OK');
    appliance.fake!.dropBucket('taken');
    appliance.fake!.seedForeignBucket('taken');
    await until('the exchange is seen', async () => (await create('taken')).code === 'FAILED_PRECONDITION');
    expect(await code(remove('taken'))).toBe('OK');
    expect(appliance.fake!.bucket('taken')).toMatchObject({ owner: 'foreign' });
    expect(await code(create('taken'))).toBe('ALREADY_EXISTS');
  });

  it('learns which bucket a registration without an identity stands for, and says when another has taken its name', async () => {
    const { database, fake } = appliance;
    fake!.seedForeignBucket('theirs');
    await database.query(
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
       SELECT tenant_id, gen_random_uuid(), id, 'theirs', 'registered', 'ready', '{"v":1}', '' FROM trivet.backend`,
    );
    const { identity } = fake!.bucket('theirs')!;
    const row = async () =>
      (await database.query("SELECT identity, condition FROM trivet.bucket WHERE name = 'theirs'"))[0]!;
    await until('it is known', async () => (await row()).identity !== null);
    expect(await row()).toEqual({ identity, condition: null });
    fake!.dropBucket('theirs');
    fake!.seedForeignBucket('theirs');
    await until('the exchange is seen', async () => (await row()).condition !== null);
    expect(await row()).toMatchObject({ identity, condition: { message: expect.stringContaining('another bucket') } });
  });

  it('does not doubt a bucket because its backend is down', async () => {
    expect(await code(create('steady'))).toBe('OK');
    appliance.fake!.addFault({ method: 'inspectBucket', mode: 'fail-before', error: 'unavailable', count: 5 });
    await until('the audit met the fault', () => appliance.fake!.calls({ resource: 'steady' }).length > 5);
    expect(await code(create('steady'))).toBe('OK');
    appliance.fake!.clearFaults();
  });

  it('takes the condition back when the bucket is there again', async () => {
    expect(await code(create('back'))).toBe('OK');
    const before = appliance.fake!.bucket('back')!;
    appliance.fake!.dropBucket('back');
    await until('the loss is seen', async () => (await create('back')).code === 'FAILED_PRECONDITION');
    appliance.fake!.restoreBucket(before);
    await until('it is vouched for again', async () => (await create('back')).code === 'OK');
  });

  it('puts an access right whose key or policy was changed behind our back', async () => {
    expect(await code(create('shared'))).toBe('OK');
    const grant = () =>
      client.call('r1', 'DriverGrantBucketAccess', {
        account_name: 'ba-audited',
        protocol: { type: 'S3' },
        authentication_type: { type: 'KEY' },
        buckets: [{ bucket_id: 'shared', access_mode: { mode: 'READ_WRITE' } }],
      });
    const { reply } = await grant();
    const { account_id: uid } = reply;
    for (const damage of [() => appliance.fake!.dropPrincipal(uid), () => appliance.fake!.dropGrants('shared')]) {
      damage();
      await until('the next Grant has put it right', async () => {
        expect((await grant()).reply).toEqual(reply);
        return appliance.fake!.keys(uid).length === 1 && appliance.fake!.grants('shared').length === 1;
      });
    }
  });
});
