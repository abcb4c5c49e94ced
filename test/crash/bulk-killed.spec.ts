import { afterAll, beforeAll, expect, it } from 'vitest';
import { runBulk } from '#storage/bulk/run-bulk';
import { AdminHouse } from '#test/admin/admin-house';
import { createdBuckets, operationOf } from '#test/admin/resource-calls';
import { letLeasesEnd } from '#test/crash/dead-worker';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import { until } from '#test/support/parts';

/**
 * A worker dies at each place of a bulk, and others go on with what it left, all of them at the end: each item is begun once,
 * and what was stopped never.
 */
let house: AdminHouse;
beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_RECONCILE_MS: '150', TRIVET_LEASE_MS: '12000' } });
}, 60_000);
afterAll(() => house?.close());

/** A tenant has few bulks that have not ended: so many are left by the dead, then a worker ends them. */
const LEFT = 5;
const points = [...failpointsOf(runBulk.handler({} as never)), 'bulk.run:item:begun'];
const made: { bulk: string; ids: string[]; stopped: boolean }[] = [];

const isUndo = (point: string): boolean => /:(undo|skip):/.test(point);
const orders = (point: string): string =>
  point.endsWith(':retry:after') ? `bulk.run:items:before=error@1;${point}=kill@1` : `${point}=kill@1`;

async function begin(name: string, stopped: boolean): Promise<string> {
  const ids = await createdBuckets(house, house.acme, `${name}-1`, `${name}-2`, `${name}-3`);
  const reply = await house.call(house.acme.admin, 'POST', '/tenants/acme/bulk/delete-buckets', { body: { ids } });
  expect(reply.status, JSON.stringify(reply.body)).toBe(202);
  const bulk = operationOf(reply);
  if (stopped) await house.call(house.acme.admin, 'POST', `/operations/${bulk}/cancel`, { body: { reason: 'a test' } });
  made.push({ bulk, ids, stopped });
  return bulk;
}

async function endAll(): Promise<void> {
  const worker = await house.appliance.worker();
  await until('all have ended', async () => {
    await letLeasesEnd(house.appliance);
    return (await house.query('SELECT FROM trivet.operation WHERE finished_at IS NULL')).length === 0;
  });
  await worker.stop('SIGKILL');
}

it('begins nothing more of its portion once it was told to stop', async () => {
  const ids = await createdBuckets(house, house.acme, 'told-1', 'told-2', 'told-3');
  const reply = await house.call(house.acme.admin, 'POST', '/tenants/acme/bulk/delete-buckets', { body: { ids } });
  const bulk = operationOf(reply);
  const worker = await house.appliance.startingWorker({ TRIVET_FAILPOINT: 'bulk.run:item:begun=stop@1' });
  const begun = "SELECT FROM trivet.bulk_item WHERE bulk_id = $1 AND state <> 'waiting'";
  await until('it has begun one', async () => (await house.query(begun, [bulk])).length === 1);
  const stop = await house.call(house.acme.admin, 'POST', `/operations/${bulk}/cancel`, { body: { reason: 'a test' } });
  expect(stop.status, JSON.stringify(stop.body)).toBe(200);
  worker.signal('SIGCONT');
  await until('it has stopped', async () => (await stateOf(bulk)) === 'cancelled', 60_000);
  await worker.stop('SIGKILL');
  const states = 'SELECT state FROM trivet.bulk_item WHERE bulk_id = $1 ORDER BY nth OFFSET 1';
  expect(await house.query(states, [bulk])).toEqual([{ state: 'skipped' }, { state: 'skipped' }]);
  // What it had begun goes on by itself, and is nothing that a later case waits for.
  await house.query("UPDATE trivet.bulk_item SET state = 'done' WHERE bulk_id = $1 AND state = 'begun'", [bulk]);
});

it.each(points.map((point, n) => [point, n] as const))('%s', async (point, n) => {
  if (n > 0 && n % LEFT === 0) await endAll();
  await begin(`killed-${n}`, isUndo(point));
  await letLeasesEnd(house.appliance);
  // Of those before it, too: ten that die at one operation are taken for its fault.
  await house.query("UPDATE trivet.operation SET crashes = 0 WHERE kind = 'bulk.run'");
  // It may die before it has said that it is there.
  const worker = await house.appliance.startingWorker({ TRIVET_FAILPOINT: orders(point) });
  expect((await worker.ended()).signal).toBe('SIGKILL');
});

it('a worker that was stopped past its lease begins nothing that another one has begun', async () => {
  const bulk = await begin('stopped', false);
  const stopped = await house.appliance.startingWorker({
    TRIVET_FAILPOINT: 'bulk.run:item:begun=stop@1',
  });
  await until('it has begun one', async () => {
    const rows = await house.query("SELECT FROM trivet.bulk_item WHERE state = 'begun'");
    return rows.length > 0 && stopped.log() !== undefined;
  });
  await letLeasesEnd(house.appliance);
  await house.appliance.worker();
  await until('the other has ended it', async () => (await stateOf(bulk)) === 'succeeded', 60_000);
  stopped.signal('SIGCONT');
});

it('leaves each item begun once, or not at all where it was stopped', async () => {
  await until(
    'all have ended',
    async () => {
      await letLeasesEnd(house.appliance);
      for (const { bulk } of made) if (['pending', 'running'].includes(await stateOf(bulk))) return false;
      return true;
    },
    120_000,
  );
  for (const { bulk, ids, stopped } of made) {
    expect(await stateOf(bulk)).toBe(stopped ? 'cancelled' : 'succeeded');
    const items = await house.query('SELECT state FROM trivet.bulk_item WHERE bulk_id = $1', [bulk]);
    expect(items).toEqual(ids.map(() => ({ state: stopped ? 'skipped' : 'done' })));
    const children = await house.query(
      `SELECT count(*)::int AS n FROM trivet.operation WHERE kind = 'bucket.delete' AND resource_id = ANY ($1)
        GROUP BY resource_id`,
      [ids],
    );
    expect(children).toEqual(stopped ? [] : ids.map(() => ({ n: 1 })));
    const entries = await house.query(
      "SELECT count(*)::int AS n FROM trivet.audit_entry WHERE action = 'bucket.delete' AND subject_id = ANY ($1)",
      [ids],
    );
    expect(entries).toEqual([{ n: stopped ? 0 : ids.length }]);
  }
});

const stateOf = async (id: string): Promise<string> =>
  (await house.query<{ state: string }>('SELECT state FROM trivet.operation WHERE id = $1', [id]))[0]!.state;
