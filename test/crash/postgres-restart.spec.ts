import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { at } from '#test/cosi/wire';
import { Crowd } from '#test/crash/crowd';
import { Jobs } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { OwnPostgres } from '#test/support/postgres-server';

describe('PostgreSQL goes away and comes back', () => {
  let postgres: OwnPostgres;
  let appliance: TestAppliance | undefined;
  beforeAll(async () => {
    postgres = await OwnPostgres.start();
  });
  afterEach(async () => {
    await appliance?.close();
    appliance = undefined;
  });
  afterAll(() => postgres?.close());

  const start = async (redis: boolean): Promise<TestAppliance> => {
    const env = { TRIVET_LEASE_MS: '6000' };
    appliance = await TestAppliance.start({ backend: 'fake', postgres: postgres.urls, redis, env });
    return appliance;
  };

  const SERVING = 1;
  const NOT_SERVING = 2;
  /** What grpc.health.v1 on the COSI socket says of the gateway. */
  const healthIs = (status: number) => {
    const client = appliance!.client();
    const check = () => client.raw('/grpc.health.v1.Health/Check', Buffer.alloc(0));
    return until(`health is ${status}`, async () => {
      const { reply } = await check();
      return reply && at(reply, 1) === status;
    });
  };

  it.each([
    { mode: 'fast', redis: true },
    { mode: 'immediate', redis: true },
    { mode: 'immediate', redis: false },
  ] as const)(
    '$mode, redis $redis, with a hundred operations in flight: all finish, each once',
    async ({ mode, redis }) => {
      const crowd = new Crowd(await start(redis), `pg-${mode}`);
      await crowd.prepare();
      const results = crowd.start();
      await crowd.underWay();
      await healthIs(SERVING);
      await postgres.stop(mode);
      await healthIs(NOT_SERVING);
      await postgres.startAgain();
      await crowd.verify(await results);
      await healthIs(SERVING);
      const ids = appliance!.processes.map(process => process.exited);
      expect(ids, 'no process ended over it').toEqual([false, false]);
    },
  );

  it('a lost LISTEN connection costs no waiter its answer', async () => {
    const one = await start(true);
    const jobs = new Jobs(one.client());
    one.fake!.addFault({ mode: 'delay', delayMs: 500, count: 1_000 });
    const answers = Promise.all(Array.from({ length: 10 }, (_, at) => jobs.create(`listen-${at}`)));
    const listeners = () =>
      one.database.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND application_name LIKE 'trivet:gateway%' AND query LIKE 'LISTEN trivet_done%'`,
      );
    await until(
      'all are accepted',
      async () => (await one.operations("state IN ('pending', 'running')")).length === 10,
    );
    const before = await until('the gateway listens', async () => {
      const now = await listeners();
      return now.length > 0 ? now : undefined;
    });
    expect(before).toHaveLength(1);
    await one.database.query('SELECT pg_terminate_backend($1)', [before[0]!.pid]);
    expect((await answers).map(({ code }) => code)).toEqual(Array.from({ length: 10 }, () => 'OK'));
    // And it listens again, on a connection that is another one.
    await until('the gateway listens again', async () => {
      const now = await listeners();
      return now.length === 1 && now[0]!.pid !== before[0]!.pid;
    });
  });
});
