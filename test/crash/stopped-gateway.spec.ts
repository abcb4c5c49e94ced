import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { idleWithin } from '#platform/database/database';
import { Jobs } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

const LEASE_MS = 3_000;
let appliance: TestAppliance;
let other: pg.Client;
beforeAll(async () => {
  const env = { TRIVET_LEASE_MS: String(LEASE_MS) };
  appliance = await TestAppliance.start({ backend: 'fake', env });
  other = new pg.Client(appliance.database.superuserUrl);
  await other.connect();
});
afterAll(async () => {
  await other?.end();
  await appliance?.close();
});

it('a transaction may stand still for a third of the lease, within reason', () => {
  expect([100, 3_000, 15_000, 20_000, 600_000].map(idleWithin)).toEqual([2_000, 2_000, 5_000, 6_666, 10_000]);
});

it('a gateway that stands still in the middle of a transaction holds its rows for less than a lease', async () => {
  const jobs = new Jobs(appliance.client());
  expect((await jobs.create('held')).code).toBe('OK');
  await other.query('BEGIN');
  await other.query("SELECT FROM trivet.bucket WHERE name = 'held' FOR UPDATE");
  void jobs.delete('held');
  const sessions = (what: string) =>
    appliance.database.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'trivet:gateway%' AND ${what}`,
    );
  await until('it waits for the row', async () => (await sessions("wait_event_type = 'Lock'")).length === 1);
  appliance.process('gateway').signal('SIGSTOP');
  try {
    await other.query('COMMIT');
    const [stopped] = await until('it has the row', async () => {
      const found = await sessions("state = 'idle in transaction'");
      return found.length > 0 ? found : undefined;
    });
    await until(
      'its transaction is ended',
      async () => (await sessions(`pid = ${stopped!.pid}`)).length === 0,
      LEASE_MS,
    );
  } finally {
    appliance.process('gateway').signal('SIGCONT');
  }
  expect((await jobs.delete('held')).code).toBe('OK');
});
