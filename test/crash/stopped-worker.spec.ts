import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { historyOf, violations } from '#test/crash/history';
import { credentialsOf, Jobs, mustSucceed } from '#test/crash/jobs';
import { mismatches } from '#test/crash/truth';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { StoppedWorkers } from '#test/support/stopped-worker';

describe.each([
  { name: 'with Redis', redis: true },
  { name: 'without Redis', redis: false },
])('a worker that is stopped beyond its lease changes nothing when it goes on, $name', ({ redis }) => {
  let appliance: TestAppliance;
  let jobs: Jobs;
  const workers = new StoppedWorkers(() => appliance);
  beforeAll(async () => {
    appliance = await TestAppliance.create({
      backend: 'fake',
      redis,
      env: { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' },
    });
    await appliance.gateway();
    jobs = new Jobs(appliance.client());
  });
  afterEach(() => workers.endOthers());
  afterAll(() => appliance?.close());

  /** Runs `call` on a worker that stops at `at`, lets another one finish it, wakes the first, and looks what it did. */
  const overtaken = async <T>(at: string, call: () => Promise<T>): Promise<T> => {
    const stale = await workers.stopsAt(at);
    const answer = call();
    await workers.stopped(stale);
    await workers.start();
    const result = await answer;
    await appliance.settled();
    const rows = await snapshot();
    expect(await mismatches(appliance)).toEqual([]);

    const seen = appliance.fake!.calls().length;
    await workers.goesOn(stale);
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
              (SELECT count(*) FROM trivet.operation_event e WHERE e.operation_id = o.id AND e.type <> 'lease_lost') AS events
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
    const stale = at ? await workers.stopsAt(`bucket.create:${at}`) : await workers.victim();
    const answer = jobs.create(name);
    if (!at) {
      const hangs = () => appliance.fake!.calls({ method: 'createBucket', resource: name }).length > 0;
      await until('the call hangs', hangs);
      stale.signal('SIGSTOP');
    }
    await workers.stopped(stale);
    const busy = await workers.startWith('*=trace;bucket.create:configure:before=hang');
    // The last place before the one where it hangs; nothing is written between the two.
    await until('the other worker waits with it', () => busy.log().includes('failpoint bucket.create:create:after\n'));

    const { lease_until: _until, crashes: counted, ...before } = (await operationOf(name))!;
    expect(counted).toBe(1);
    await workers.goesOn(stale);
    // All that it says is that it lives, and has lost its lease (invariant E11).
    await until('no crash is counted any more', async () => (await operationOf(name))!.crashes === 0);
    const { lease_until: _now, crashes: _crashes, losses, lost_progress: at_, ...after } = (await operationOf(name))!;
    const { losses: lostBefore, lost_progress: _before, ...unchanged } = before;
    expect(after).toEqual(unchanged);
    expect({ losses, lostBefore }).toEqual({ losses: 1, lostBefore: 0 });
    expect(at_).not.toBeNull();
    expect(after).toMatchObject({ state: 'running', fence: '2', finished_at: null });

    await stale.stop('SIGKILL');
    await busy.stop('SIGKILL');
    await workers.start();
    expect((await answer).code).toBe('OK');
    expect(await mismatches(appliance)).toEqual([]);
  });
  const operationOf = async (name: string) => {
    const [row] = await appliance.database.query<
      Record<string, unknown> & { attempt: number; crashes: number; step: string | null }
    >(
      `SELECT o.*, (SELECT count(*) FROM trivet.operation_event e WHERE e.operation_id = o.id AND e.type <> 'lease_lost') AS events
         FROM trivet.operation o WHERE resource_name = $1`,
      [name],
    );
    return row;
  };

  it('before a policy is written, while the access is revoked: the key does not come back', async () => {
    await workers.running();
    await mustSucceed(() => jobs.create('shared'));
    const kept = credentialsOf(await mustSucceed(() => jobs.grant('kept', [['shared', 'READ_ONLY']])));

    const stale = await workers.stopsAt('access.grant:putPrincipal:call');
    const granting = jobs.grant('taken', [['shared', 'READ_WRITE']]);
    await workers.stopped(stale);
    const [access] = await appliance.database.query<{ account_id: string }>(
      "SELECT account_id FROM trivet.access WHERE name = 'taken'",
    );
    // Accepted before anybody may take over the grant, which else would end first.
    const revoking = mustSucceed(() => jobs.revoke(access!.account_id, ['shared']));
    await until(
      'the revocation is accepted',
      async () => (await appliance.operations("kind = 'access.revoke'")).length > 0,
    );
    await workers.start();
    expect((await revoking).code).toBe('OK');
    expect((await granting).code).toBe('ABORTED');

    const seen = appliance.fake!.calls().length;
    await workers.goesOn(stale);
    expect(appliance.fake!.calls().slice(seen)).toEqual([]);
    expect(appliance.fake!.principals().map(({ uid }) => uid)).toEqual([kept.accountId]);
    expect(appliance.fake!.grants('shared')).toEqual([{ uid: kept.accountId, mode: 'read_only' }]);
  });

  const rotations = ['principal:point', 'putPrincipal:call', 'putPrincipal:answered', 'end:before'];
  it.each(redis ? rotations : ['putPrincipal:call'])(
    'in the middle of a change of a key, at %s: Grant answers the one of the other worker, beside the former',
    async at => {
      const bucket = `keys-${at.replace(':', '-').toLowerCase()}`;
      await workers.running();
      await mustSucceed(() => jobs.create(bucket));
      const grant = () => mustSucceed(() => jobs.grant(bucket, [[bucket, 'READ_WRITE']]));
      const former = credentialsOf(await grant());
      const rotated = async () => {
        const [row] = await appliance.database.query<{ done: boolean }>(
          'SELECT key_operation IS NULL AND former_until IS NOT NULL AS done FROM trivet.access WHERE name = $1',
          [bucket],
        );
        return row!.done;
      };
      await overtaken(`access.rotate:${at}`, async () => {
        await appliance.database.query(
          `UPDATE trivet.access SET rotate_at = now(),
                  desired = desired || '{"rotation": {"afterSeconds": 7200, "graceSeconds": 3600}}' WHERE name = $1`,
          [bucket],
        );
        await until('its key is changed', rotated, 60_000);
      });
      const now = credentialsOf(await grant());
      const keys = appliance.fake!.principals().find(({ uid }) => uid === former.accountId)!.keys;
      expect(keys.map(({ accessKeyId }) => accessKeyId).sort()).toEqual([former.accessKeyId, now.accessKeyId].sort());
      expect(now.accessKeyId).not.toBe(former.accessKeyId);
    },
  );

  it('kept every promise on the way', async () => {
    expect(await mismatches(appliance)).toEqual([]);
    expect(violations(await historyOf(appliance))).toEqual([]);
  });
});
