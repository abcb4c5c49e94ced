import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

describe.each([
  { name: 'with Redis', redis: true },
  { name: 'without Redis', redis: false },
])('the main job over the fake, $name', ({ redis }) => {
  let appliance: TestAppliance;
  beforeAll(async () => {
    appliance = await TestAppliance.start({ backend: 'fake', redis });
  });
  afterAll(() => appliance?.close());

  it('creates, grants, repeats, revokes, deletes', async () => {
    const client = appliance.client();
    const created = await client.call('v1alpha1', 'DriverCreateBucket', { name: 'photos' });
    expect(created).toMatchObject({ code: 'OK', reply: { bucket_id: 'photos' } });
    const request = { bucket_id: 'photos', name: 'ba-1', authentication_type: 'Key' };
    const granted = await client.call('v1alpha1', 'DriverGrantBucketAccess', request);
    expect(granted.code, granted.message).toBe('OK');
    const operations = (await appliance.operations()).length;
    expect(await client.call('v1alpha1', 'DriverGrantBucketAccess', request)).toMatchObject({ reply: granted.reply });
    expect((await client.call('v1alpha1', 'DriverCreateBucket', { name: 'photos' })).code).toBe('OK');
    expect((await appliance.operations()).length).toBe(operations);
    expect(appliance.fake!.grants('photos')).toEqual([{ uid: granted.reply.account_id, mode: 'read_write' }]);

    const { account_id } = granted.reply;
    const revoked = await client.call('v1alpha1', 'DriverRevokeBucketAccess', { bucket_id: 'photos', account_id });
    expect(revoked.code, revoked.message).toBe('OK');
    expect(appliance.fake!.principals()).toEqual([]);
    expect(appliance.fake!.allGrants()).toEqual([]);
    const deleted = await client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id: 'photos' });
    expect(deleted.code, deleted.message).toBe('OK');
    expect(appliance.fake!.buckets()).toEqual([]);
    expect((await appliance.operations()).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
      'bucket.create succeeded',
      'access.grant succeeded',
      'access.revoke succeeded',
      'bucket.delete succeeded',
    ]);
    // Its caller is answered by the commit, before the worker counts it.
    const metrics = await until('the last one is counted', async () => {
      const text = await appliance.process('worker').metrics();
      return text.includes('trivet_operations_inflight{kind="bucket.delete"} 0\n') ? text : undefined;
    });
    for (const kind of ['bucket.create', 'access.grant', 'access.revoke', 'bucket.delete']) {
      expect(metrics).toContain(`trivet_operations_total{kind="${kind}",result="succeeded"} 1\n`);
      expect(metrics).toContain(`trivet_operation_duration_seconds_count{kind="${kind}"} 1\n`);
      expect(metrics).toContain(`trivet_operations_inflight{kind="${kind}"} 0\n`);
    }
    for (const name of ['trivet_oldest_pending_seconds', 'trivet_operations_pending', 'trivet_lease_lost_total'])
      expect(metrics).toContain(`\n${name} 0\n`);
    expect(metrics).toContain('trivet_backend_calls_total{backend_kind="fake",method="createBucket",result="ok"} 1\n');
  });
});
