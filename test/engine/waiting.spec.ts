import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** What a caller of COSI gets while the work behind it takes its time, fails, or stands still (invariant E8). */
let appliance: TestAppliance;
let client: CosiClient;
beforeAll(async () => {
  appliance = await TestAppliance.start({
    backend: 'fake',
    env: { TRIVET_LEASE_MS: '12000', TRIVET_COSI_WAIT_MS: '2500' },
  });
  client = appliance.client();
});
afterAll(() => appliance?.close());
afterEach(() => appliance.fake!.clearFaults());

const create = (name: string, deadlineMs?: number) =>
  client.call('v1alpha1', 'DriverCreateBucket', { name }, deadlineMs);
const grant = (name: string, bucket_id: string) =>
  client.call('v1alpha1', 'DriverGrantBucketAccess', { name, bucket_id, authentication_type: 'Key' });
const operation = async (name: string) => (await appliance.operations(`resource_name = '${name}'`)).at(-1);
const ended = (name: string, state = 'succeeded') =>
  until(`${name} is ${state}`, async () => (await operation(name))?.state === state);
const begun = (method: string, resource: string) =>
  until(`${method} of ${resource} began`, () => appliance.fake!.calls({ method, resource }).length > 0);

describe('a call that waits', () => {
  it("gets ABORTED with the operation's id at its own deadline, and the work goes on", async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'slow', mode: 'delay', delayMs: 2_000 });
    const started = performance.now();
    const outcome = await create('slow', 1_200);
    expect(outcome.code, outcome.message).toBe('ABORTED');
    expect(performance.now() - started).toBeLessThan(1_200);
    expect(outcome.message).toContain((await operation('slow'))!.id);
    expect((await operation('slow'))!.state).toBe('running');
    await ended('slow');
    expect(await create('slow')).toMatchObject({ code: 'OK' });
    expect((await appliance.operations("resource_name = 'slow'")).length).toBe(1);
  });

  it('gets ABORTED after the time that the appliance allows, without a deadline of its own', async () => {
    appliance.fake!.addFault({ method: '*', resource: 'slower', mode: 'delay', delayMs: 1_500, count: 10 });
    const started = performance.now();
    const outcome = await create('slower');
    expect(outcome.code, outcome.message).toBe('ABORTED');
    expect(performance.now() - started).toBeGreaterThanOrEqual(2_400);
    expect(outcome.message).toContain((await operation('slower'))!.id);
    await ended('slower');
  });

  it('may leave without a word: the work goes on and its repeat gets the result', async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'left', mode: 'delay', delayMs: 1_000 });
    const leaving = appliance.client();
    void leaving.call('v1alpha1', 'DriverCreateBucket', { name: 'left' });
    await begun('createBucket', 'left');
    leaving.close();
    expect(await create('left')).toMatchObject({ code: 'OK' });
    expect((await appliance.operations("resource_name = 'left'")).length).toBe(1);
  });

  it('joins the operation that another call began, and both get its end', async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'joined', mode: 'delay', delayMs: 1_000 });
    const first = create('joined');
    await begun('createBucket', 'joined');
    const others = [create('joined'), create('joined'), create('joined')];
    for (const outcome of await Promise.all([first, ...others])) expect(outcome).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.calls({ method: 'createBucket', resource: 'joined' }).filter(isBegin)).toHaveLength(1);
  });

  it('gets ABORTED for a bucket that is still being made, when it asks whether that exists', async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'unmade', mode: 'delay', delayMs: 1_000 });
    const making = create('unmade');
    await begun('createBucket', 'unmade');
    const get = () => client.call('r1', 'DriverGetExistingBucket', { existing_bucket_id: 'unmade' });
    expect(await get()).toMatchObject({ code: 'ABORTED' });
    expect(await making).toMatchObject({ code: 'OK' });
    expect(await get()).toMatchObject({ code: 'OK' });
  });

  it('waits for an end that it joined late, whether or not a notification comes', async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'quiet', mode: 'delay', delayMs: 1_000 });
    void create('quiet', 500);
    await begun('createBucket', 'quiet');
    await appliance.database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    expect(await create('quiet')).toMatchObject({ code: 'OK' });
  });
});

const isBegin = (row: { phase: string }): boolean => row.phase === 'begin';

describe('a call whose work fails', () => {
  it.each([
    { error: 'permission_denied', code: 'PERMISSION_DENIED' },
    { error: 'unauthenticated', code: 'UNAUTHENTICATED' },
    { error: 'unavailable', code: 'UNAVAILABLE' },
  ] as const)('gets $code at once while it is retried, and the work ends by itself', async ({ error, code }) => {
    const name = `retried-${code.toLowerCase().replace('_', '-')}`;
    appliance.fake!.addFault({
      method: 'createBucket',
      resource: name,
      mode: 'fail-before',
      error,
      message: 'as ordered',
      // Else the retry may have succeeded by the time at which a busy machine tells of the failure.
      count: 1_000,
    });
    const started = performance.now();
    expect(await create(name)).toMatchObject({ code, message: 'as ordered' });
    expect(performance.now() - started).toBeLessThan(2_400);
    appliance.fake!.clearFaults();
    await ended(name);
    expect(await create(name)).toMatchObject({ code: 'OK' });
    expect((await appliance.operations(`resource_name = '${name}'`)).length).toBe(1);
  });

  it('that joins while it is retried gets the error of the last attempt at once', async () => {
    const fault = {
      method: 'inspectBucket',
      resource: 'again',
      mode: 'fail-before',
      error: 'permission_denied',
    } as const;
    appliance.fake!.addFault({ ...fault, message: 'refused', count: 1_000 });
    expect(await create('again')).toMatchObject({ code: 'PERMISSION_DENIED' });
    // By then the back-off is long enough for another call to come in between.
    await until('several attempts', async () => (await operation('again'))!.attempt >= 4);
    expect(await create('again')).toMatchObject({ code: 'PERMISSION_DENIED', message: 'refused' });
    appliance.fake!.clearFaults();
    await ended('again');
  });

  it('gets UNAVAILABLE for an answer that did not come, since nobody knows its effect', async () => {
    appliance.fake!.addFault({ method: 'createBucket', resource: 'unanswered', mode: 'hang-after' });
    expect(await client.call('v1alpha1', 'DriverCreateBucket', { name: 'unanswered' })).toMatchObject({
      code: 'ABORTED',
    });
    const error = await until(
      'the bound of the call',
      async () =>
        (
          await appliance.database.query<{ kind: string }>(
            "SELECT error ->> 'kind' AS kind FROM trivet.operation WHERE resource_name = 'unanswered' AND error IS NOT NULL",
          )
        )[0]?.kind,
    );
    expect(error).toBe('timeout');
    expect(await create('unanswered')).toMatchObject({ code: 'UNAVAILABLE' });
    await ended('unanswered');
    expect(appliance.fake!.calls({ method: 'createBucket', resource: 'unanswered' }).filter(isBegin)).toHaveLength(1);
  });

  it('gets FAILED_PRECONDITION with the id of the operation that waits for a person, each time', async () => {
    expect(await create('parked')).toMatchObject({ code: 'OK' });
    appliance.fake!.addFault({
      method: 'putGrants',
      resource: 'parked',
      mode: 'fail-before',
      error: 'failed_precondition',
    });
    const outcomes = [await grant('ba-parked', 'parked'), await grant('ba-parked', 'parked')];
    const { id, state } = (await operation('ba-parked'))!;
    expect(state).toBe('needs_attention');
    for (const outcome of outcomes) {
      expect(outcome.code, outcome.message).toBe('FAILED_PRECONDITION');
      expect(outcome.message).toContain(id);
    }
    // Others at the same bucket are not held up.
    expect(await grant('ba-beside', 'parked')).toMatchObject({ code: 'OK' });
  });

  it('gets the code of what failed for good', async () => {
    appliance.fake!.seedForeignBucket('theirs', 3);
    expect(await create('theirs')).toMatchObject({ code: 'ALREADY_EXISTS' });
    appliance.fake!.addFault({
      method: 'createBucket',
      resource: 'full',
      mode: 'fail-before',
      error: 'resource_exhausted',
      message: 'no room',
    });
    expect(await create('full')).toMatchObject({ code: 'RESOURCE_EXHAUSTED', message: 'no room' });
    await ended('full', 'failed');
    expect(await create('full')).toMatchObject({ code: 'OK' });
  });

  it('is not told that something is revoked that is not: the revocation waits for a person, then ends', async () => {
    expect(await create('stuck')).toMatchObject({ code: 'OK' });
    const { account_id } = (await grant('ba-stuck', 'stuck')).reply;
    const revoke = () => client.call('v1alpha1', 'DriverRevokeBucketAccess', { bucket_id: 'stuck', account_id });
    appliance.fake!.addFault({
      method: 'putGrants',
      resource: 'stuck',
      mode: 'fail-before',
      error: 'resource_exhausted',
    });
    const outcomes = [await revoke(), await revoke()];
    const { id } = (await operation('ba-stuck'))!;
    for (const outcome of outcomes) {
      expect(outcome.code, outcome.message).toBe('FAILED_PRECONDITION');
      expect(outcome.message).toContain(id);
    }
    expect(appliance.fake!.keys(account_id)).toEqual([]);
    await appliance.database.query(
      "UPDATE trivet.operation SET state = 'pending', next_run_at = now(), attempt = 0 WHERE id = $1",
      [id],
    );
    await ended('ba-stuck');
    expect(await revoke()).toMatchObject({ code: 'OK' });
    expect(appliance.fake!.grants('stuck')).toEqual([]);
    expect(appliance.fake!.principals().filter(({ uid }) => uid === account_id)).toEqual([]);
  });
});

describe('a backend that is down', () => {
  it('gets UNAVAILABLE at once, GetInfo still answers, and the work ends by itself when it is back', async () => {
    expect(await create('before')).toMatchObject({ code: 'OK' });
    appliance.fake!.addFault({ mode: 'fail-before', message: 'the store is down', count: 100_000 });
    const opened = async () =>
      (await appliance.database.query('SELECT FROM trivet.backend_circuit WHERE open_until > now()')).length > 0;
    const down = Array.from({ length: 4 }, (_, n) => create(`down-${n}`));
    for (const outcome of await Promise.all(down)) expect(outcome).toMatchObject({ code: 'UNAVAILABLE' });
    await until('the circuit is open', opened);

    const started = performance.now();
    const told = { code: 'UNAVAILABLE', message: expect.stringContaining('does not answer') };
    expect(await create('while-down')).toMatchObject(told);
    expect(await create('while-down')).toMatchObject({ code: 'UNAVAILABLE' });
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(await client.call('v1alpha1', 'DriverGetInfo', {})).toMatchObject({ code: 'OK' });
    expect(await create('before')).toMatchObject({ code: 'OK' });
    // It waits in Postgres and takes no worker's slot.
    expect(await operation('while-down')).toMatchObject({ state: 'pending', attempt: 0 });

    appliance.fake!.clearFaults();
    await ended('while-down');
    for (let n = 0; n < 4; n++) await ended(`down-${n}`);
    expect(await opened()).toBe(false);
    expect(await create('while-down')).toMatchObject({ code: 'OK' });
  });
});
