import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/**
 * What a mutation costs (invariant E7): three commits and one for each backend call. pg_stat_database counts every
 * transaction, also those that only read; what only reads here is one of three functions whose calls PostgreSQL counts
 * too, or the empty ones in which connections that listen hear of the end; and nothing else runs meanwhile: no
 * reconciler, no audit, no redispatch.
 */
const N = 60;
/** A share of an operation's cost that is not its own: connections that are made anew, the database's housekeeping. */
const BESIDE = 0.4;
let appliance: TestAppliance;
let client: CosiClient;
/** Beside the appliance's database, so that looking does not count. */
let outside: pg.Client;

beforeAll(async () => {
  const env = { TRIVET_RECONCILE_MS: '3600000', TRIVET_LEASE_MS: '600000' };
  appliance = await TestAppliance.create({ backend: 'fake', env });
  const [{ name }] = (await appliance.database.query<{ name: string }>('SELECT current_database() AS name')) as [
    { name: string },
  ];
  await appliance.database.query(`ALTER DATABASE ${name} SET track_functions = 'all'`);
  await Promise.all([appliance.gateway(), appliance.worker()]);
  client = appliance.client();
  const url = new URL(appliance.database.superuserUrl);
  database = url.pathname.slice(1);
  url.pathname = '/postgres';
  outside = new pg.Client(url.href);
  await outside.connect();
  await call('DriverCreateBucket', { name: 'warm' });
});
afterAll(async () => {
  await outside?.end();
  await appliance?.close();
});
let database: string;

const call = async (method: string, request: object) => {
  const outcome = await client.call('v1alpha1', method, request);
  expect(outcome.code, outcome.message).toBe('OK');
  return outcome.reply;
};

interface Count {
  commits: number;
  reads: number;
  /** Connections that hear notifications: each of its database has an empty transaction for each. */
  listeners: number;
}

/** Server processes report what they did with a delay of up to ten seconds, but at once when they end: so they are ended. */
async function count(): Promise<Count> {
  const { rows: listening } = await outside.query<{ listeners: number }>(
    "SELECT count(*)::int AS listeners FROM pg_stat_activity WHERE datname = $1 AND query LIKE 'LISTEN %'",
    [database],
  );
  // In two statements: in one, PostgreSQL may end processes before it looks at whose they are.
  const { rows } = await outside.query<{ pid: number }>('SELECT pid FROM pg_stat_activity WHERE datname = $1', [
    database,
  ]);
  const pids = rows.map(({ pid }) => pid);
  await outside.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [pids]);
  await until('their processes are gone', async () => {
    return (await outside.query('SELECT FROM pg_stat_activity WHERE pid = ANY ($1)', [pids])).rowCount === 0;
  });
  const inside = new pg.Client(appliance.database.superuserUrl);
  await inside.connect();
  const { rows: functions } = await inside.query<{ reads: number }>(
    `SELECT coalesce(sum(calls), 0)::int AS reads FROM pg_stat_user_functions
      WHERE funcname IN ('find_buckets', 'find_access', 'read_outcomes', 'schema_version')`,
  );
  await inside.end();
  const { rows: counted } = await outside.query<{ commits: number }>(
    'SELECT xact_commit::int AS commits FROM pg_stat_database WHERE datname = $1',
    [database],
  );
  return { commits: counted[0]!.commits, reads: functions[0]!.reads, listeners: listening[0]!.listeners };
}

async function costOf(
  work: (n: number) => Promise<unknown>,
  times = N,
): Promise<{ commits: number; reads: number; calls: number }> {
  const before = await count();
  appliance.fake!.clearCalls();
  const ended = (await appliance.operations("state = 'succeeded'")).length;
  for (let n = 0; n < times; n++) await work(n);
  const calls = appliance.fake!.calls().filter(row => row.phase === 'begin').length / times;
  const after = await count();
  const reads = after.reads - before.reads;
  const heard = ((await appliance.operations("state = 'succeeded'")).length - ended) * after.listeners;
  return { commits: (after.commits - before.commits - reads - heard) / times, reads: reads / times, calls };
}

describe('commits that write', () => {
  const accounts: string[] = [];
  const grants = (n: number) => ({ bucket_id: `b-${n}`, name: `ba-${n}`, authentication_type: 'Key' });
  it.each([
    { kind: 'create', work: (n: number) => call('DriverCreateBucket', { name: `b-${n}` }), calls: 3 },
    {
      kind: 'grant',
      work: async (n: number) => accounts.push((await call('DriverGrantBucketAccess', grants(n))).account_id),
      calls: 2,
    },
    {
      kind: 'revoke',
      work: (n: number) => call('DriverRevokeBucketAccess', { bucket_id: `b-${n}`, account_id: accounts[n] }),
      calls: 3,
    },
    { kind: 'delete', work: (n: number) => call('DriverDeleteBucket', { bucket_id: `b-${n}` }), calls: 2 },
  ])('of a $kind are at most three and one a backend call', async ({ kind, work, calls }) => {
    const cost = await costOf(work);
    expect(cost.calls, kind).toBe(calls);
    expect(cost.commits, JSON.stringify(cost)).toBeLessThanOrEqual(3 + calls + BESIDE);
    // Accepting, leasing and ending cannot be missing, or this counts the wrong thing.
    expect(cost.commits, JSON.stringify(cost)).toBeGreaterThanOrEqual(3);
  });

  it('are none for a repeat', async () => {
    await call('DriverCreateBucket', { name: 'repeated' });
    // They are so quick that what goes on beside them counts for more.
    const cost = await costOf(() => call('DriverCreateBucket', { name: 'repeated' }), 5 * N);
    expect(cost.commits).toBeLessThanOrEqual(BESIDE);
    expect(cost.reads).toBeGreaterThanOrEqual(1);
    expect(cost.calls).toBe(0);
  });
});
