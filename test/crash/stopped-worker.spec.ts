import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { historyOf, violations } from '#test/crash/history';
import { credentialsOf, Jobs, mustSucceed } from '#test/crash/jobs';
import { mismatches } from '#test/crash/truth';
import { type DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { isStopped, leasesLost } from '#test/support/stopped-worker';

describe.each([
  { name: 'with Redis', redis: true },
  { name: 'without Redis', redis: false },
])('a worker that is stopped beyond its lease changes nothing when it goes on, $name', ({ redis }) => {
  let appliance: TestAppliance;
  let jobs: Jobs;
  const workers: DaemonProcess[] = [];
  beforeAll(async () => {
    appliance = await TestAppliance.create({
      backend: 'fake',
      redis,
      env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
    });
    await appliance.gateway();
    jobs = new Jobs(appliance.client());
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) {
      worker.signal('SIGCONT');
      await worker.stop('SIGKILL');
    }
  });
  afterAll(() => appliance?.close());

  /** Starts a worker; it stops itself at `at` if given. */
  const start = async (at?: string): Promise<DaemonProcess> => {
    const worker = await appliance.worker(at ? { TRIVET_FAILPOINTS: '1', TRIVET_FAILPOINT: `${at}=stop@1` } : {});
    workers.push(worker);
    return worker;
  };

  /** Runs `call` on a worker that stops at `at`, lets another one finish it, wakes the first, and looks what it did. */
  const overtaken = async <T>(at: string, call: () => Promise<T>): Promise<T> => {
    const stale = await start(at);
    const answer = call();
    await until(`the worker stops at ${at}`, () => isStopped(stale));
    await start();
    const result = await answer;
    await appliance.settled();
    const rows = await snapshot();
    expect(await mismatches(appliance)).toEqual([]);

    const seen = appliance.fake!.calls().length;
    stale.signal('SIGCONT');
    await until('the stale worker knows', async () => (await leasesLost(stale)) === 1);
    expect(await snapshot()).toEqual(rows);
    const afterwards = appliance.fake!.calls().slice(seen);
    // Only the answer to what it had asked before may still come in.
    expect(afterwards.filter(({ phase }) => phase !== 'end')).toEqual([]);
    expect(await mismatches(appliance)).toEqual([]);
    return result;
  };
  const snapshot = () =>
    appliance.database.query(
      `SELECT id, state, step, fence, attempt, progress, finished_at,
              (SELECT count(*) FROM trivet.operation_event e WHERE e.operation_id = o.id) AS events
         FROM trivet.operation o ORDER BY seq`,
    );

  const places = [
    'claimed',
    'create:point',
    'createBucket:call',
    'createBucket:answered',
    'configure:after',
    'end:before',
  ];
  it.each(redis ? places : ['createBucket:call', 'end:before'])('in the middle of a creation, at %s', async at => {
    const name = `photos-${at.replace(':', '-').toLowerCase()}`;
    const outcome = await overtaken(`bucket.create:${at}`, () => jobs.create(name));
    expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
    const [operation] = await appliance.operations(`resource_name = '${name}'`);
    expect(operation).toMatchObject({ state: 'succeeded', attempt: 2 });
  });

  /** By the fence alone: the row runs and its lease lives, but for another worker. One case for each fenced statement. */
  const writes: [string, string | undefined][] = [
    ['a recovery point', 'inspect:after'],
    ['its end', 'end:before'],
    ['a retry', undefined],
  ];
  it.each(redis ? writes.slice(2) : writes)('while another one still runs it: %s', async (_, at) => {
    const name = `busy-${at?.replace(':', '-') ?? 'retry'}`;
    if (!at) appliance.fake!.addFault({ method: 'createBucket', resource: name, mode: 'hang' });
    const stale = await start(at && `bucket.create:${at}`);
    const answer = jobs.create(name);
    if (!at) {
      const hangs = () => appliance.fake!.calls({ method: 'createBucket', resource: name }).length > 0;
      await until('the call hangs', hangs);
      stale.signal('SIGSTOP');
    }
    await until('the worker is stopped', () => isStopped(stale));
    const busy = await appliance.worker({
      TRIVET_FAILPOINTS: '1',
      TRIVET_FAILPOINT: '*=trace;bucket.create:configure:before=hang',
    });
    workers.push(busy);
    // The last place before the one where it hangs; nothing is written between the two.
    await until('the other worker waits with it', () => busy.log().includes('failpoint bucket.create:create:after\n'));

    const { lease_until: _until, ...before } = (await operationOf(name))!;
    stale.signal('SIGCONT');
    await until('the stale worker knows', async () => (await leasesLost(stale)) === 1);
    const { lease_until: _now, ...after } = (await operationOf(name))!;
    expect(after).toEqual(before);
    expect(after).toMatchObject({ state: 'running', fence: '2', finished_at: null });

    await stale.stop('SIGKILL');
    await busy.stop('SIGKILL');
    await start();
    expect((await answer).code).toBe('OK');
    expect(await mismatches(appliance)).toEqual([]);
  });
  const operationOf = async (name: string) => {
    const [row] = await appliance.database.query<Record<string, unknown> & { attempt: number; step: string | null }>(
      `SELECT o.*, (SELECT count(*) FROM trivet.operation_event e WHERE e.operation_id = o.id) AS events
         FROM trivet.operation o WHERE resource_name = $1`,
      [name],
    );
    return row;
  };

  it('before a policy is written, while the access is revoked: the key does not come back', async () => {
    let worker = await start();
    await mustSucceed(() => jobs.create('shared'));
    const kept = credentialsOf(await mustSucceed(() => jobs.grant('kept', [['shared', 'READ_ONLY']])));
    await worker.stop('SIGKILL');

    const stale = await start('access.grant:putPrincipal:call');
    const granting = jobs.grant('taken', [['shared', 'READ_WRITE']]);
    await until('the worker stops before the key', () => isStopped(stale));
    const [access] = await appliance.database.query<{ account_id: string }>(
      "SELECT account_id FROM trivet.access WHERE name = 'taken'",
    );
    worker = await start();
    expect((await mustSucceed(() => jobs.revoke(access!.account_id, ['shared']))).code).toBe('OK');
    expect((await granting).code).toBe('ABORTED');

    const seen = appliance.fake!.calls().length;
    stale.signal('SIGCONT');
    await until('the stale worker knows', async () => (await leasesLost(stale)) === 1);
    expect(appliance.fake!.calls().slice(seen)).toEqual([]);
    expect(appliance.fake!.principals().map(({ uid }) => uid)).toEqual([kept.accountId]);
    expect(appliance.fake!.grants('shared')).toEqual([{ uid: kept.accountId, mode: 'read_only' }]);
  });

  it('kept every promise on the way', async () => {
    expect(await mismatches(appliance)).toEqual([]);
    expect(violations(await historyOf(appliance))).toEqual([]);
  });
});
