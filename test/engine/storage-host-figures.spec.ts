import { afterAll, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { Jobs, mustSucceed } from '#test/crash/jobs';
import { TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

let appliance: TestAppliance;
beforeAll(async () => {
  appliance = await TestAppliance.start({ backend: 'fake' });
});
afterAll(() => appliance?.close());

const SILENT = `
  INSERT INTO trivet.storage_host (name, named, machine, release, seen_at)
  VALUES ($1, true, $1, '1', now() - interval '1 minute')`;
const HOME = `
  INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host)
  SELECT tenant_id, backend_id, 'away', $1 FROM trivet.operation LIMIT 1`;
/** As of a volume there. */
const ACCEPTED = `
  INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, pool, host)
  SELECT tenant_id, $1, kind, class, backend_id, resource_kind, $2, 'there', '{}', 'away', $3 FROM trivet.operation LIMIT 1`;

it('storage hosts are counted: up, down with pools, gone without, and what waits for one that is down', async () => {
  const { database } = appliance;
  const figures = async () => {
    const text = await appliance.process('worker').metrics();
    const one = (series: string) =>
      Number(
        text
          .split('\n')
          .find(line => line.startsWith(`${series} `))
          ?.split(' ')[1],
      );
    const hosts = ['up', 'down', 'gone'].map(state => one(`trivet_storage_hosts{state="${state}"}`));
    return [...hosts, one('trivet_operations_waiting_for_storage_host')];
  };
  const besides = async () => {
    const text = await appliance.process('worker').metrics();
    return ['storage_hosts_draining', 'storage_host_releases', 'pools_at_another_host', 'pools_absent'].map(name =>
      Number(new RegExp(`^trivet_${name} (\\d+)$`, 'm').exec(text)?.[1]),
    );
  };
  await until('the worker has said where it is', async () => (await figures())[0] === 1);
  expect(await figures()).toEqual([1, 0, 0, 0]);

  await mustSucceed(() => new Jobs(appliance.client()).create('known'));
  for (const host of ['with-a-pool', 'with-none']) await database.query(SILENT, [host]);
  await database.query(HOME, ['with-a-pool']);
  const id = uuidv7();
  await database.query(ACCEPTED, [id, uuidv7(), 'with-a-pool']);
  await until('what is there is held', async () => (await figures())[3] === 1);
  expect(await figures()).toEqual([1, 1, 1, 1]);

  await database.query(`SELECT trivet.storage_host_beat('with-a-pool', true, 'with-a-pool', '1', NULL, 0)`);
  expect(await figures()).toEqual([2, 0, 1, 0]);

  expect(await besides()).toEqual([0, 2, 0, 0]);
  const reach = { foreign: [{ name: 'a' }, { name: 'b' }], absent: [{ name: 'c' }] };
  await database.query(`SELECT trivet.storage_host_beat('with-a-pool', true, 'with-a-pool', '1', $1, 42)`, [
    JSON.stringify(reach),
  ]);
  await database.query("SELECT trivet.drain_storage_host('with-a-pool', true, NULL, 'me')");
  expect(await besides()).toEqual([1, 2, 2, 1]);
  expect(await appliance.process('worker').metrics()).toMatch(/^trivet_storage_host_memory_free_bytes 42$/m);
});

it('pools of clusters that nobody serves are counted, and for how long: without a lease, given back, and while the host before is not shut out', async () => {
  const { database } = appliance;
  const unserved = async () => {
    const text = await appliance.process('worker').metrics();
    const [pools, seconds] = ['pools_unserved', 'pool_unserved_oldest_seconds'].map(name =>
      Number(new RegExp(`^trivet_${name} (\\S+)$`, 'm').exec(text)?.[1]),
    );
    return [pools, Math.floor(seconds! / 60)];
  };
  const home = (change: string) => database.query(`UPDATE trivet.pool_home SET ${change}`);
  expect(await unserved()).toEqual([0, 0]);
  await home("cluster = true, lease_until = now() + interval '1 hour'");
  expect(await unserved()).toEqual([0, 0]);
  await home("lease_until = now() - interval '3 minutes'");
  expect(await unserved()).toEqual([1, 3]);
  await home("lease_until = '-infinity', unserved_since = now() - interval '5 minutes'");
  expect(await unserved()).toEqual([1, 5]);
  await home(`lease_until = now() + interval '1 hour', to_fence = '[{"host": "a"}]'`);
  expect(await unserved()).toEqual([1, 5]);
  await home("to_fence = '[]'");
  expect(await unserved()).toEqual([0, 0]);
});
