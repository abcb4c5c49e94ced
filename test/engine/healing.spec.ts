import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { CosiClient, Outcome } from '#test/cosi/client';
import { fakeKind } from '#test/fakes/object/fake-kind';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** An access that lives and must be put right: whatever comes of it, it keeps its account, its key and what it still has. */
let appliance: TestAppliance;
let client: CosiClient;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake', env: { TRIVET_LEASE_MS: '12000' } });
  client = appliance.client();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.fake!.clearFaults());

const create = (name: string) => client.call('v1alpha1', 'DriverCreateBucket', { name });
const remove = (bucket_id: string) => client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id });
const grant = (account_name: string, ...buckets: string[]) =>
  client.call('r1', 'DriverGrantBucketAccess', {
    account_name,
    protocol: { type: 'S3' },
    authentication_type: { type: 'KEY' },
    buckets: buckets.map(bucket_id => ({ bucket_id, access_mode: { mode: 'READ_WRITE' } })),
  });
const ok = async (call: Promise<Outcome>) => {
  const outcome = await call;
  expect(outcome.code, outcome.message).toBe('OK');
  return outcome.reply;
};
const operations = async (kind: string, name: string, state: string) =>
  appliance.operations(`kind = '${kind}' AND resource_name = '${name}' AND state = '${state}'`);
const uids = (bucket: string) => appliance.fake!.grants(bucket).map(({ uid }) => uid);

it('is in the policies that others write while it waits', async () => {
  await ok(create('waits-1'));
  await ok(create('waits-2'));
  const reply = await ok(grant('ba-waits', 'waits-1', 'waits-2'));
  await ok(remove('waits-1'));
  appliance.fake!.addFault({ method: 'createBucket', resource: 'waits-1', mode: 'delay', delayMs: 2_000 });
  appliance.fake!.clearCalls();
  const making = create('waits-1');
  const begun = () => appliance.fake!.calls({ method: 'createBucket', resource: 'waits-1' }).length > 0;
  await until('the bucket is made', begun);
  const healing = grant('ba-waits', 'waits-1', 'waits-2');
  await until('it waits', async () => (await operations('access.grant', 'ba-waits', 'pending'))[0]);
  await ok(grant('ba-beside', 'waits-2'));
  expect(uids('waits-2')).toContain(reply.account_id);
  await ok(making);
  expect(await ok(healing)).toEqual(reply);
  expect(uids('waits-1')).toEqual([reply.account_id]);
});

it.each(['before', 'after'])(
  'keeps what it has when one of its buckets is deleted again %s it began, and is put right later',
  async when => {
    const [one, two, name] = [`again-${when}-1`, `again-${when}-2`, `ba-again-${when}`];
    await ok(create(one));
    await ok(create(two));
    const reply = await ok(grant(name, one, two));
    await ok(remove(one));
    await ok(create(one));
    if (when === 'before') await appliance.process('worker').stop();
    else {
      const fault = { method: 'putPrincipal', mode: 'fail-before', error: 'permission_denied' } as const;
      appliance.fake!.addFault({ ...fault, resource: reply.account_id, count: 1_000 });
    }
    const healing = grant(name, one, two);
    const operation = await until('it waits', async () => {
      const [found] = await operations('access.grant', name, 'pending');
      return when === 'before' || found?.attempt ? found : undefined;
    });
    const due = (at: string) =>
      appliance.database.query(`UPDATE trivet.operation SET next_run_at = ${at} WHERE id = $1`, [operation.id]);
    await due("now() + interval '1 hour'");
    if (when === 'before') await appliance.worker();
    else expect(await healing).toMatchObject({ code: 'PERMISSION_DENIED' });
    await ok(remove(one));
    appliance.fake!.clearFaults();
    await due('now()');
    if (when === 'before') expect(await healing).toMatchObject({ code: 'NOT_FOUND' });
    await until('it has failed', async () => (await operations('access.grant', name, 'failed'))[0]);
    expect(uids(two)).toEqual([reply.account_id]);
    const left = `SELECT b.name FROM trivet.bucket_grant g JOIN trivet.bucket b ON b.id = g.bucket_id
                    JOIN trivet.access a ON a.id = g.access_id WHERE a.name = $1`;
    expect(await appliance.database.query(left, [name])).toEqual([{ name: two }]);
    await ok(create(one));
    expect(await ok(grant(name, one, two))).toEqual(reply);
  },
);

it('needs no more room in a policy than it has; who is new is refused before anything is accepted (O5)', async () => {
  const bucket = 'crowded';
  const bytes = (read_write: number) =>
    fakeKind.policyBytes(bucket, { read_write, read_only: 0, write_only: 0, revoked: 0 });
  let room = 1;
  while (bytes(room + 1) <= fakeKind.maxPolicyBytes) room += 1;
  await ok(create(bucket));
  await appliance.database.query(
    `WITH made AS (
       INSERT INTO trivet.access (tenant_id, id, backend_id, name, account_id, state, desired, fingerprint)
       SELECT tenant_id, gen_random_uuid(), backend_id, 'many-' || n, 'many-' || n, 'ready', '{}', 'x'
         FROM trivet.bucket, generate_series(1, $1::int) AS n WHERE name = 'crowded' RETURNING tenant_id, id)
     INSERT INTO trivet.bucket_grant (tenant_id, access_id, bucket_id, mode, state)
     SELECT tenant_id, id, (SELECT id FROM trivet.bucket WHERE name = 'crowded'), 'read_write', 'applied' FROM made`,
    [room - 1],
  );
  const reply = await ok(grant('ba-last', bucket));
  expect(uids(bucket)).toHaveLength(room);
  const before = (await appliance.operations()).length;
  const calls = appliance.fake!.calls().length;
  const refused = await grant('ba-beyond', bucket);
  expect(refused).toMatchObject({ code: 'RESOURCE_EXHAUSTED', message: expect.stringContaining('revoke accesses') });
  expect((await appliance.operations()).length).toBe(before);
  expect(appliance.fake!.calls().length).toBe(calls);

  appliance.fake!.dropPrincipal(reply.account_id);
  await appliance.database.query("UPDATE trivet.access SET stale = true WHERE name = 'ba-last'");
  expect(await ok(grant('ba-last', bucket))).toEqual(reply);
  expect(appliance.fake!.keys(reply.account_id)).toHaveLength(1);
});

it('is revoked as a whole, key included, when its stored credentials are gone', async () => {
  await ok(create('keyless'));
  const { account_id } = await ok(grant('ba-keyless', 'keyless'));
  await appliance.database.query(
    "DELETE FROM trivet.secret WHERE owner_id = (SELECT id FROM trivet.access WHERE name = 'ba-keyless')",
  );
  expect(await grant('ba-keyless', 'keyless')).toMatchObject({
    code: 'FAILED_PRECONDITION',
    message: expect.stringContaining('revoke this access and grant it again'),
  });
  await ok(client.call('v1alpha1', 'DriverRevokeBucketAccess', { bucket_id: 'keyless', account_id }));
  expect(appliance.fake!.keys(account_id)).toEqual([]);
  expect(uids('keyless')).toEqual([]);
  expect((await ok(grant('ba-keyless', 'keyless'))).account_id).not.toBe(account_id);
});
