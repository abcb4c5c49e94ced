import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient, Outcome } from '#test/cosi/client';
import type { FaultOrder } from '#test/fakes/object/fake-control';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/**
 * What is negated, in the four states in which a negation can find it (invariant E4). A step that is under way is held
 * by a delay well below the bound of a call; errors are of a kind that does not open the backend's circuit.
 */
let appliance: TestAppliance;
let client: CosiClient;
beforeAll(async () => {
  appliance = await TestAppliance.create({ backend: 'fake', env: { TRIVET_LEASE_MS: '12000' } });
  await appliance.gateway();
  client = appliance.client();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.fake!.clearFaults());

const HELD_MS = 1_500;

const create = (name: string) => client.call('v1alpha1', 'DriverCreateBucket', { name });
const remove = (bucket_id: string) => client.call('v1alpha1', 'DriverDeleteBucket', { bucket_id });
const grant = (name: string, bucket_id: string) =>
  client.call('v1alpha1', 'DriverGrantBucketAccess', { name, bucket_id, authentication_type: 'Key' });
const revoke = (account_id: string, bucket_id: string) =>
  client.call('v1alpha1', 'DriverRevokeBucketAccess', { account_id, bucket_id });

const operation = async (kind: string, name: string) =>
  (await appliance.operations(`kind = '${kind}' AND resource_name = '${name}'`)).at(-1);
const inState = (kind: string, name: string, state: string) =>
  until(`${kind} of ${name} is ${state}`, async () => (await operation(kind, name))?.state === state);
const begun = (method: string, resource = '*') =>
  until(`${method} began`, () => appliance.fake!.calls({ method, resource }).length > 0);
const account = async (name: string): Promise<string> => {
  const [row] = await until('the access is accepted', async () => {
    const rows = await appliance.database.query<{ account_id: string }>(
      "SELECT account_id FROM trivet.access WHERE name = $1 AND state <> 'gone'",
      [name],
    );
    return rows.length > 0 ? rows : undefined;
  });
  return row!.account_id;
};
const faults = (...orders: FaultOrder[]) => {
  for (const order of orders) appliance.fake!.addFault(order);
};

describe('before any worker has taken it up', () => {
  it('cancels a pending creation at once, and then leaves no trace', async () => {
    const creating = create('pending-b');
    await inState('bucket.create', 'pending-b', 'pending');
    const deleting = remove('pending-b');
    expect(await creating).toMatchObject({ code: 'ABORTED' });
    await inState('bucket.delete', 'pending-b', 'pending');
    expect(await create('pending-b')).toMatchObject({ code: 'ABORTED' });
    await appliance.worker();
    expect(await deleting).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.calls({ method: 'createBucket' })).toEqual([]);
    expect((await operation('bucket.create', 'pending-b'))?.state).toBe('cancelled');
    expect((await appliance.operations("kind = 'bucket.create'")).length).toBe(1);
    expect(await create('pending-b')).toMatchObject({ code: 'OK' });
    expect(await remove('pending-b')).toMatchObject({ code: 'OK' });
  });

  it('cancels a pending grant at once: a revoked account never comes to be', async () => {
    expect(await create('pending-g')).toMatchObject({ code: 'OK' });
    await appliance.process('worker').stop();
    const granting = grant('ba-pending', 'pending-g');
    const accountId = await account('ba-pending');
    const revoking = revoke(accountId, 'pending-g');
    expect(await granting).toMatchObject({ code: 'ABORTED' });
    await inState('access.revoke', 'ba-pending', 'pending');
    expect(await grant('ba-pending', 'pending-g')).toMatchObject({ code: 'ABORTED' });
    await appliance.worker();
    expect(await revoking).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.calls({ method: 'putPrincipal' })).toEqual([]);
    expect(appliance.fake!.principals()).toEqual([]);
    expect(await remove('pending-g')).toMatchObject({ code: 'OK' });
  });
});

interface Case {
  state: 'running' | 'retrying' | 'parked';
  faults: FaultOrder[];
  /** What the first caller gets; nobody has told it yet when it is absent. */
  first?: Outcome['code'];
}

describe('create and delete', () => {
  const cases: Case[] = [
    { state: 'running', faults: [{ method: 'createBucket', mode: 'delay', delayMs: HELD_MS }] },
    {
      state: 'retrying',
      faults: [{ method: 'configureBucket', mode: 'fail-before', error: 'permission_denied', count: 1_000 }],
      first: 'PERMISSION_DENIED',
    },
    {
      state: 'parked',
      faults: [
        { method: 'configureBucket', mode: 'fail-before', error: 'invalid_argument' },
        { method: 'deleteBucket', mode: 'fail-before', error: 'failed_precondition' },
      ],
      first: 'FAILED_PRECONDITION',
    },
  ];

  it.each(cases)('removes what a $state creation has left', async ({ state, faults: ordered, first }) => {
    const name = `made-${state}`;
    faults(...ordered);
    const creating = create(name);
    await begun('createBucket', name);
    if (first) expect(await creating).toMatchObject({ code: first });
    appliance.fake!.clearFaults();
    faults({ method: 'deleteBucket', resource: name, mode: 'delay', delayMs: HELD_MS });
    const deleting = remove(name);
    if (!first) expect(await creating).toMatchObject({ code: 'ABORTED' });
    await until('the deletion is accepted', () => operation('bucket.delete', name));
    expect((await create(name)).code).toBe('ABORTED');
    expect(await deleting).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket(name)).toBeUndefined();
    await inState('bucket.create', name, 'cancelled');
    expect((await appliance.operations(`resource_name = '${name}'`)).map(row => `${row.kind} ${row.state}`)).toEqual([
      'bucket.create cancelled',
      'bucket.delete succeeded',
    ]);
    // Nothing of the old life stands in the way of the next.
    expect(await create(name)).toMatchObject({ code: 'OK' });
    expect(await remove(name)).toMatchObject({ code: 'OK' });
  });

  it('waits out a creation whose answer is missing, then removes what it made', async () => {
    const name = 'made-unanswered';
    faults({ method: 'createBucket', mode: 'hang-after' });
    const creating = create(name);
    await begun('createBucket', name);
    const deleting = remove(name);
    // Whether the creation is told of its time-out or of its cancellation first is no matter.
    expect(['ABORTED', 'UNAVAILABLE']).toContain((await creating).code);
    expect(await deleting).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.bucket(name)).toBeUndefined();
    const log = appliance.fake!.calls({ resource: name });
    const unanswered = log.find(row => row.method === 'createBucket' && row.phase === 'begin')!;
    const probe = log.findLast(row => row.method === 'inspectBucket' && row.phase === 'begin')!;
    expect(probe.at - unanswered.at).toBeGreaterThanOrEqual(12_000 * 0.3);
  });
});

describe('grant and revoke', () => {
  const cases: Case[] = [
    { state: 'running', faults: [{ method: 'putPrincipal', mode: 'delay', delayMs: HELD_MS }] },
    {
      state: 'retrying',
      faults: [{ method: 'putGrants', mode: 'fail-before', error: 'permission_denied', count: 1_000 }],
      first: 'PERMISSION_DENIED',
    },
    {
      state: 'parked',
      faults: [{ method: 'putGrants', mode: 'fail-before', error: 'failed_precondition' }],
      first: 'FAILED_PRECONDITION',
    },
  ];

  it.each(cases)('removes what a $state grant has left', async ({ state, faults: ordered, first }) => {
    const [bucket, name] = [`granted-${state}`, `ba-${state}`];
    expect(await create(bucket)).toMatchObject({ code: 'OK' });
    faults(...ordered);
    const granting = grant(name, bucket);
    const accountId = await account(name);
    await begun('putPrincipal', accountId);
    if (first) expect(await granting).toMatchObject({ code: first });
    appliance.fake!.clearFaults();
    faults({ method: 'removeKey', resource: accountId, mode: 'delay', delayMs: HELD_MS });
    const revoking = revoke(accountId, bucket);
    if (!first) expect(await granting).toMatchObject({ code: 'ABORTED' });
    await until('the revocation is accepted', () => operation('access.revoke', name));
    expect((await grant(name, bucket)).code).toBe('ABORTED');
    expect(await revoking).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.principals()).toEqual([]);
    expect(appliance.fake!.grants(bucket)).toEqual([]);
    await inState('access.grant', name, 'cancelled');
    expect(await appliance.database.query('SELECT * FROM trivet.bucket_grant')).toEqual([]);
    expect(await appliance.database.query("SELECT * FROM trivet.secret WHERE owner_table = 'access'")).toEqual([]);
    const again = await grant(name, bucket);
    expect(again).toMatchObject({ code: 'OK' });
    expect(again.reply.account_id).not.toBe(accountId);
    expect(await revoke(again.reply.account_id, bucket)).toMatchObject({ code: 'OK' });
    expect(await remove(bucket)).toMatchObject({ code: 'OK' });
  });
});

it('a part of a grant that is still being made is not taken away: the call comes again', async () => {
  for (const bucket of ['half-1', 'half-2']) expect(await create(bucket)).toMatchObject({ code: 'OK' });
  faults({ method: 'putPrincipal', mode: 'delay', delayMs: HELD_MS });
  const granting = client.call('r1', 'DriverGrantBucketAccess', {
    account_name: 'ba-half',
    protocol: { type: 'S3' },
    authentication_type: { type: 'KEY' },
    buckets: ['half-1', 'half-2'].map(bucket_id => ({ bucket_id, access_mode: { mode: 'READ_WRITE' } })),
  });
  const accountId = await account('ba-half');
  expect(await revoke(accountId, 'half-1')).toMatchObject({ code: 'ABORTED' });
  expect(await granting).toMatchObject({ code: 'OK' });
  expect(await revoke(accountId, 'half-1')).toMatchObject({ code: 'OK' });
  expect(appliance.fake!.grants('half-2')).toEqual([{ uid: accountId, mode: 'read_write' }]);
  expect(await revoke(accountId, 'half-2')).toMatchObject({ code: 'OK' });
  for (const bucket of ['half-1', 'half-2']) expect(await remove(bucket)).toMatchObject({ code: 'OK' });
});

it('has left nothing at all', async () => {
  await appliance.settled();
  expect(appliance.fake!.buckets()).toEqual([]);
  expect(appliance.fake!.principals()).toEqual([]);
  expect(appliance.fake!.allGrants()).toEqual([]);
  expect(await appliance.database.query('SELECT * FROM trivet.operation_slot')).toEqual([]);
  expect(await appliance.operations("state = 'needs_attention'")).toEqual([]);
});
