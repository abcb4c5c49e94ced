import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { Crowd } from '#test/crash/crowd';
import { Jobs, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';
import { OwnPostgres } from '#test/support/postgres-server';
import { PostgresStandby } from '#test/support/postgres-standby';

describe('the primary of PostgreSQL dies, and its standby is promoted', () => {
  let primary: OwnPostgres | undefined;
  let standby: PostgresStandby | undefined;
  let appliance: TestAppliance | undefined;
  let truth: pg.Pool | undefined;
  let killed = false;
  afterEach(async () => {
    await appliance?.close();
    await truth?.end();
    await standby?.close();
    await primary?.close();
    [appliance, truth, standby, primary] = [undefined, undefined, undefined, undefined];
  });

  /** Gateway and worker know both servers; tests look at whichever lives. */
  async function start(env: Record<string, string>): Promise<TestAppliance> {
    killed = false;
    primary = await OwnPostgres.start();
    standby = await PostgresStandby.of(primary);
    appliance = await TestAppliance.create({ backend: 'fake', postgres: primary.urls, redis: false, env });
    const { database } = appliance;
    // The standby stands first: nobody may take the first that answers.
    const both = (url: string) =>
      `${url.replace(/(?<=@)/, `127.0.0.1:${standby!.port},`)}?target_session_attrs=read-write`;
    appliance.env.TRIVET_DATABASE_URL = both(database.appUrl);
    appliance.env.TRIVET_DATABASE_ENGINE_URL = both(database.engineUrl);
    truth = new pg.Pool({ connectionString: standby.url(database.superuserUrl), max: 2 });
    truth.on('error', () => {});
    const found = truth;
    const drop = () => database.drop();
    const { query } = database;
    Object.assign(database, {
      query: async (text: string, params?: unknown[]) =>
        killed ? (await found.query(text, params)).rows : query(text, params),
      drop: () => (killed ? Promise.resolve() : drop()),
    });
    await Promise.all([appliance.gateway(), appliance.worker()]);
    return appliance;
  }
  async function failOver(): Promise<void> {
    killed = true;
    await primary!.stop('killed');
    await standby!.promote();
  }

  it('with a hundred operations in flight: all finish, each once, and an old primary that comes back is left alone', async () => {
    const one = await start({ TRIVET_LEASE_MS: '6000' });
    // What a caller was told is on both.
    await one.database.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await one.database.query('SELECT pg_reload_conf()');
    const crowd = new Crowd(one, 'failover');
    await crowd.prepare();
    const results = crowd.start();
    await crowd.underWay();
    await failOver();
    await crowd.verify(await results);
    expect(one.processes.map(({ exited }) => exited)).toEqual([false, false]);
    for (const process of one.processes)
      expect(process.log()).toMatch(/another server of the database was promoted, and is used from now on/);
    await until('the gateway listens there', async () => {
      const listening = await one.database.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'trivet:gateway%' AND query LIKE '%LISTEN trivet_done%'",
      );
      return listening.length === 1;
    });

    await primary!.startAgain();
    await one.database.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [
      'trivet_app',
    ]);
    await one.process('gateway').ready();
    // Whoever asked it whether it takes writes is gone at once.
    await until('nobody uses the old one', async () => {
      const at = "SELECT FROM pg_stat_activity WHERE usename IN ('trivet_app', 'trivet_engine')";
      return (await pgRows(primary!.urls.superuserUrl, at)).length === 0;
    });
    expect(await one.database.query("SELECT FROM pg_stat_activity WHERE usename = 'trivet_app'")).not.toEqual([]);
  });

  it('without a claim: the worker that had it knows at once, long before it would have renewed it', async () => {
    const one = await start({ TRIVET_LEASE_MS: '60000' });
    one.fake!.addFault({ method: 'createBucket', mode: 'hang' });
    const worker = one.process('worker');
    worker.signal('SIGSTOP');
    const created = persist(() => new Jobs(one.client()).create('claimed'));
    await until('the standby has it', async () => (await truth!.query('SELECT FROM trivet.operation')).rowCount === 1);
    await standby!.cutOff();
    worker.signal('SIGCONT');
    await until('it is claimed', async () => (await one.operations("state = 'running'")).length === 1);
    await until('it is called', () => one.fake!.calls({ method: 'createBucket' }).length > 0);
    await failOver();
    await until('the worker knows', () => worker.log().includes('lease not renewed'));
    await until('it runs again', async () => (await one.operations("state = 'succeeded'")).length === 1);
    expect((await created).at(-1)!.code).toBe('OK');
    const { rows } = await truth!.query('SELECT attempt, fence::int, crashes FROM trivet.operation');
    expect(rows).toEqual([{ attempt: 1, fence: 1, crashes: 0 }]);
  });

  it('without what it had acknowledged last: that is said, and everything goes on', async () => {
    const one = await start({});
    const jobs = new Jobs(one.client());
    const create = async (name: string) => (await persist(() => jobs.create(name))).at(-1)!.code;
    expect(await create('kept')).toBe('OK');
    await until('the standby has it', async () => {
      const { rows } = await truth!.query("SELECT FROM trivet.operation WHERE state = 'succeeded'");
      return rows.length === 1;
    });
    await standby!.cutOff();
    expect(await create('lost')).toBe('OK');
    await failOver();
    const said = await until('it is in the audit log', async () => {
      const rows = await one.database.query<{ name: string; after: { kind: string } }>(
        "SELECT subject_name AS name, after FROM trivet.audit_entry WHERE action = 'operation.lose'",
      );
      return rows.length > 0 ? rows : undefined;
    });
    expect(said.map(({ name, after }) => [name, after.kind])).toEqual([['lost', 'bucket.create']]);
    expect(one.process('gateway').log()).toContain('the database has lost an operation that a caller was promised');
    expect(await one.process('gateway').metrics()).toMatch(/^trivet_operations_lost_total 1$/m);
    expect(await create('after')).toBe('OK');
    expect(await create('kept')).toBe('OK');
    expect(one.processes.map(({ exited }) => exited)).toEqual([false, false]);
  });
});

async function pgRows<Row>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}
