import { execFile } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dump } from '#platform/dump/dump';
import { load } from '#platform/dump/load';
import { programFile } from '#platform/package-root';
import { Jobs, persist } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { createDatabase } from '#test/support/database';
import { until } from '#test/support/parts';
import { OwnPostgres } from '#test/support/postgres-server';

/** Two clusters that know nothing of each other; the appliance was made in the first, and knows the address of both. */
let first: OwnPostgres;
let second: OwnPostgres;
let appliance: TestAppliance;
let jobs: Jobs;
let backup: string;
/** At the second one, past every policy. */
let truth: pg.Pool;

beforeAll(async () => {
  [first, second] = await Promise.all([OwnPostgres.start(), OwnPostgres.start()]);
  appliance = await TestAppliance.create({ backend: 'fake', postgres: first.urls, redis: false });
  const { database, env } = appliance;
  Object.assign(env, {
    TRIVET_DATABASE_URL: both(database.appUrl),
    TRIVET_DATABASE_ENGINE_URL: both(database.engineUrl),
  });
  truth = new pg.Pool({ connectionString: atSecond(database.superuserUrl, second.urls.superuserUrl), max: 2 });
  truth.on('error', () => {});
  await Promise.all([appliance.gateway(), appliance.worker()]);
  jobs = new Jobs(appliance.client());
});
afterAll(async () => {
  // What it would drop goes with the servers.
  if (appliance) Object.assign(appliance.database, { drop: async () => {} });
  await appliance?.close();
  await truth?.end();
  await first?.close();
  await second?.close();
});

const portOf = (server: OwnPostgres): string => new URL(server.urls.superuserUrl).port;
const both = (url: string): string => url.replace(/(?<=:)\d+(?=\/)/, `${portOf(first)},127.0.0.1:${portOf(second)}`);
/** The database of `url`, with the login of `server`. */
const atSecond = (url: string, server: string): string =>
  Object.assign(new URL(server), { pathname: new URL(url).pathname }).href;
const rows = async <Row extends object>(text: string): Promise<Row[]> => (await truth.query<Row>(text)).rows;
const create = async (name: string): Promise<string> => (await persist(() => jobs.create(name))).at(-1)!.code;
const gateway = () => appliance.process('gateway');

/** With the addresses of both servers. */
function migrate(...more: string[]): Promise<{ code: number; said: string }> {
  const env = {
    PATH: '/usr/bin:/bin',
    TRIVET_HOME: appliance.folder,
    TRIVET_KEK_FILE: appliance.env.TRIVET_KEK_FILE,
    TRIVET_DATABASE_OWNER_URL: both(appliance.database.ownerUrl),
  };
  const main = programFile('trivet');
  return new Promise(resolve => {
    execFile(process.execPath, [main, 'migrate', ...more], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr }),
    );
  });
}

it('a copy in another cluster is refused, until somebody declares it; then gateway and worker go there by themselves', async () => {
  expect(await create('kept')).toBe('OK');
  backup = join(appliance.folder, 'trivet.dump');
  await dump(appliance.database.ownerUrl, backup, { release: 'test', settings: {} });
  expect(await create('lost')).toBe('OK');
  await first.stop('killed');
  // There is no such database yet, nor this login. The first of them may still find a connection to the first server.
  for (let attempt = 0; attempt < 4; attempt++) expect((await jobs.create('meanwhile')).code).toBe('UNAVAILABLE');

  const name = new URL(appliance.database.appUrl).pathname.slice(1);
  const empty = await createDatabase(second.urls);
  await load(empty.ownerUrl, backup);
  const made = new URL(empty.superuserUrl).pathname.slice(1);
  const client = new pg.Client(second.urls.superuserUrl);
  await client.connect();
  for (const url of ['ownerUrl', 'appUrl', 'engineUrl'] as const) {
    const { username, password } = new URL(first.urls[url]);
    await client.query(`ALTER ROLE ${username} PASSWORD '${password}'`);
  }
  await client.query(`ALTER DATABASE ${made} RENAME TO ${name}`);
  await client.end();

  await until('the gateway refuses it', () => gateway().log().includes('nobody has declared that it counts'));
  expect((await jobs.create('meanwhile')).code).toBe('UNAVAILABLE');
  expect(await rows("SELECT FROM trivet.operation WHERE resource_name = 'meanwhile'")).toEqual([]);
  expect((await migrate()).said).toMatch(/trivet migrate --restored/);

  const [before] = await rows<{ last: string }>('SELECT last_value AS last FROM trivet.host_fence');
  expect(await migrate('--restored')).toEqual({
    code: 0,
    said: expect.stringContaining(`127.0.0.1:${portOf(second)} is the one that counts now`),
  });
  const [after] = await rows<{ last: string }>('SELECT last_value AS last FROM trivet.host_fence');
  expect(Number(after!.last)).toBeGreaterThan(Number(before!.last) + 1e12);
  expect(await create('meanwhile')).toBe('OK');
  expect(await create('kept')).toBe('OK');
  expect(appliance.processes.map(({ exited }) => exited)).toEqual([false, false]);
  await until('what was lost is said', async () => {
    const lost = await rows("SELECT FROM trivet.audit_entry WHERE action = 'operation.lose' AND subject_name = 'lost'");
    return lost.length === 1;
  });
});

it('the first one is left alone when it comes back, and a second declaration wants one server named', async () => {
  await first.startAgain();
  await rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('trivet_app', 'trivet_engine')");
  expect(await create('after')).toBe('OK');
  expect(await rows("SELECT FROM trivet.bucket WHERE name = 'after' AND state = 'ready'")).toHaveLength(1);
  const { code, said } = await migrate('--restored');
  expect(code).toBe(78);
  expect(said).toMatch(/take writes: name the one alone that was restored/);
});
