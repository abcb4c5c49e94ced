/** Accesses without a key at a store that sees changes late: nobody can ask as one, so what is left of it opens buckets unseen. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { OperationAdmin } from '#operations/administration/operation-admin';
import { handlersOf } from '#operations/definitions/define-operation';
import { OperationKinds } from '#operations/definitions/operation-kinds';
import { Database } from '#platform/database/database';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import type { CosiClient, Outcome } from '#test/cosi/client';
import { letLeasesEnd } from '#test/crash/dead-worker';
import { persist } from '#test/crash/jobs';
import type { FakeControl } from '#test/fakes/object/fake-control';
import { FAKE_IAM_TRAITS } from '#test/fakes/object/fake-iam-backend';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const LATE_MS = FAKE_IAM_TRAITS.keylessLateMs!;

let appliance: TestAppliance;
let database: Database;
let fake: FakeControl;
let client: CosiClient;
let count = 0;
beforeAll(async () => {
  appliance = await TestAppliance.start({
    backend: 'fake-iam',
    env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
  });
  const { appUrl } = appliance.database;
  database = await Database.connect({ appUrl, applicationName: 'trivet:test', poolSize: 1 });
  fake = appliance.fake!;
  client = appliance.client();
});
afterAll(async () => {
  await database?.close();
  await appliance?.close();
});
afterEach(() => fake.clearFaults());

const last = async (call: () => Promise<Outcome>): Promise<Outcome> => (await persist(call)).at(-1)!;
async function ok(method: string, request: object) {
  const outcome = await last(() => client.call('r1', method, request));
  expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
  return outcome.reply;
}
async function make(): Promise<string> {
  const name = `keyless-${++count}`;
  await ok('DriverCreateBucket', { name, protocols: [{ type: 'S3' }] });
  return name;
}
const wish = (bucket_id: string) => ({
  account_name: `ba-${bucket_id}`,
  protocol: { type: 'S3' },
  authentication_type: { type: 'SERVICE_ACCOUNT' },
  service_account_name: 'uploader',
  parameters: { serviceAccountNamespace: 'shop' },
  buckets: [{ bucket_id, access_mode: { mode: 'READ_WRITE' } }],
});
const grant = (bucket: string) => ok('DriverGrantBucketAccess', wish(bucket));
const revoke = (account_id: string, bucket_id: string) =>
  ok('DriverRevokeBucketAccess', { account_id, buckets: [{ bucket_id }] });
const removeBucket = (bucket_id: string) => ok('DriverDeleteBucket', { bucket_id });
/** As an administrator does with what waits for a person. */
async function resolve(id: string): Promise<void> {
  const [tenant] = await appliance.database.query<{ id: string }>(
    'SELECT tenant_id AS id FROM trivet.operation WHERE id = $1',
    [id],
  );
  const admin = new OperationAdmin(database, new OperationKinds(handlersOf(OBJECT_OPERATIONS, {} as never)));
  await admin.act('resolve', { tenantId: tenant!.id }, id, { by: 'a test' });
}
const accessOf = async (bucket: string) =>
  (
    await appliance.database.query<{ state: string; stale: boolean; account: string }>(
      'SELECT state, stale, account_id AS account FROM trivet.access WHERE name = $1',
      [`ba-${bucket}`],
    )
  )[0]!;

/** Of what is `removing`, whoever writes rights on the bucket next gives it none. */
const grantsOf = async (account: string) =>
  (
    await appliance.database.query<{ state: string }>(
      'SELECT g.state FROM trivet.bucket_grant g JOIN trivet.access a ON a.id = g.access_id WHERE a.account_id = $1',
      [account],
    )
  ).map(({ state }) => state);

/** Its worker dies at this place, and the next one is refused, so that it waits for a person, who gives it up. */
async function givenUp(bucket: string, dies: string): Promise<void> {
  const doomed = appliance.process('worker');
  await doomed.arm(`${dies}=kill`);
  const answer = client.call('r1', 'DriverGrantBucketAccess', wish(bucket)).catch(() => {});
  expect(await doomed.ended()).toMatchObject({ signal: 'SIGKILL' });
  fake.addFault({ method: 'putPrincipal', mode: 'fail-before', error: 'unimplemented', count: 100 });
  fake.addFault({ method: 'putGrants', mode: 'fail-before', error: 'unimplemented', count: 100 });
  await letLeasesEnd(appliance);
  await appliance.worker();
  const waits = `kind = 'access.grant' AND resource_name = 'ba-${bucket}' AND state = 'needs_attention'`;
  const parked = await until('it waits for a person', async () => (await appliance.operations(waits))[0]);
  await resolve(parked.id);
  await answer;
  fake.clearFaults();
}

it.each(['access.grant:putGrants:answered', 'access.grant:putPrincipal:answered'])(
  'a first one that is given up after %s stays, to be revoked',
  async place => {
    const bucket = await make();
    await givenUp(bucket, place);
    const { state, stale, account } = await accessOf(bucket);
    expect({ state, stale }).toEqual({ state: 'ready', stale: true });
    expect(await grantsOf(account)).toEqual(['removing']);
    expect(fake.principals().map(({ uid }) => uid)).toContain(account);
    await revoke(account, bucket);
    expect(fake.grants(bucket)).toEqual([]);
    expect(fake.principals().map(({ uid }) => uid)).not.toContain(account);
  },
);

it('a first one that is given up is granted again under the same account', async () => {
  const bucket = await make();
  await givenUp(bucket, 'access.grant:putGrants:answered');
  const { account } = await accessOf(bucket);
  // Its worker dies after it has begun: the next one still knows what it was to add.
  await givenUp(bucket, 'access.grant:putGrants:answered');
  expect(await grantsOf(account)).toEqual(['removing']);
  expect(await grant(bucket)).toMatchObject({ account_id: account });
  expect(fake.grants(bucket)).toEqual([{ uid: account, mode: 'read_write' }]);
  expect(await accessOf(bucket)).toMatchObject({ state: 'ready', stale: false });
  await revoke(account, bucket);
});

it('a first one of which nothing was asked is forgotten', async () => {
  const bucket = await make();
  const doomed = appliance.process('worker');
  await doomed.stop();
  const answer = client.call('r1', 'DriverGrantBucketAccess', wish(bucket)).catch(() => {});
  await until('it is accepted', async () => (await accessOf(bucket))?.state === 'granting');
  await appliance.database.query(
    `UPDATE trivet.operation SET state = 'needs_attention', place = NULL,
            error = '{"kind": "internal", "message": "a test", "retry": "person"}' WHERE resource_name = $1`,
    [`ba-${bucket}`],
  );
  const [parked] = await appliance.operations(`kind = 'access.grant' AND resource_name = 'ba-${bucket}'`);
  await resolve(parked!.id);
  await answer;
  expect((await accessOf(bucket)).state).toBe('gone');
  await appliance.worker();
});

/** Milliseconds from when the rights on it were first taken until it was removed, by the store's log. */
function closedFor(bucket: string): number {
  const effects = (method: string) =>
    fake.calls({ method, resource: bucket }).filter(({ phase }) => phase === 'effect');
  const [, taken] = effects('putGrants');
  return effects('deleteBucket').at(-1)!.at - taken!.at;
}

it('a bucket of one is not free before the store goes by what was taken', async () => {
  const bucket = await make();
  const { account_id } = await grant(bucket);
  await removeBucket(bucket);
  expect(closedFor(bucket)).toBeGreaterThanOrEqual(LATE_MS);
  await revoke(account_id, bucket);
});

it('nor is a bucket of one that was revoked a moment ago', async () => {
  const bucket = await make();
  const { account_id } = await grant(bucket);
  await revoke(account_id, bucket);
  await removeBucket(bucket);
  // From the end of the revocation on, which is somewhat later.
  expect(closedFor(bucket)).toBeGreaterThanOrEqual(LATE_MS);
});

it('a bucket is not held up for ever where accesses of others go all the time', async () => {
  const [bucket, other] = [await make(), await make()];
  const { account_id } = await grant(other);
  await revoke(account_id, other);
  let isGone = false;
  const goesAgain = (async () => {
    while (!isGone)
      await appliance.database.query(
        "UPDATE trivet.access SET updated_at = now() WHERE state = 'gone' AND account_id = $1",
        [account_id],
      );
  })();
  await removeBucket(bucket).finally(() => {
    isGone = true;
  });
  await goesAgain;
  expect(fake.bucket(bucket)).toBeUndefined();
});

it('one that the store has lost sight of is made again by the repeat of its grant', async () => {
  const bucket = await make();
  fake.addFault({ method: 'putGrants', resource: bucket, mode: 'hold' });
  const granted = grant(bucket);
  await until('it is to get its rights', () => fake.calls({ method: 'putGrants', resource: bucket }).length > 0);
  const { account } = await accessOf(bucket);
  fake.dropPrincipal(account);
  fake.clearFaults();
  expect(await granted).toMatchObject({ account_id: account });
  expect(fake.grants(bucket)).toEqual([{ uid: account, mode: 'read_write' }]);
});
