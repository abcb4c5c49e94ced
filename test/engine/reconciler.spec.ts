import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { Circuits } from '#operations/running/circuit';
import { operationRetention } from '#operations/workers/operation-retention';
import { PeriodicTasks } from '#operations/workers/periodic-tasks';
import { Reconciler } from '#operations/workers/reconciler';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, KINDS, RememberingDoorbell } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

let house: EngineHouse;
let tasks: PeriodicTasks | undefined;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterEach(() => tasks?.stop());
afterAll(() => house?.close());

function start(doorbell: RememberingDoorbell, ...more: PeriodicTask[]): PeriodicTasks {
  const reconciler = new Reconciler(house.database, doorbell, () => {}, { roundMs: 20, cap: 10, kinds: KINDS });
  tasks = new PeriodicTasks([...more, reconciler], {
    database: house.database,
    workerId: uuidv7(),
    leastMs: 20,
    registered: async () => {},
  });
  tasks.start();
  return tasks;
}

it('goes on with what is due, and stops, while another task hangs on a backend', async () => {
  const doorbell = new RememberingDoorbell();
  let told: AbortSignal | undefined;
  const running = start(doorbell, {
    name: 'hanging',
    everyMs: 0,
    scope: 'worker',
    run: signal => {
      told = signal;
      return new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  await until('it began', () => told);
  const id = await house.accept(randomUUID());
  await house.testDatabase.query('UPDATE trivet.operation SET place = NULL WHERE id = $1', [id]);
  await until('it is rung', () => doorbell.rings.some(({ operationId }) => operationId === id), 5_000);
  await running.stop();
  expect(told?.aborted).toBe(true);
});

it('goes on with what is due, and stops, while a backend whose circuit is open hangs in its probe', async () => {
  const deaf = uuidv7();
  await house.testDatabase.query(
    "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'deaf', 'fake', '{}')",
    [house.tenantId, deaf],
  );
  await house.testDatabase.query(
    "INSERT INTO trivet.backend_circuit (tenant_id, backend_id, open_until) VALUES ($1, $2, now() + interval '1 hour')",
    [house.tenantId, deaf],
  );
  const doorbell = new RememberingDoorbell();
  let probed: string | undefined;
  const circuits = new Circuits(house.database, async (_, backendId) => {
    probed = backendId;
    await new Promise(() => {});
  });
  const running = start(doorbell, circuits);
  await until('its probe hangs', () => probed === deaf);
  const id = await house.accept(randomUUID(), { cap: 0 });
  await until('another backend is worked for', () => doorbell.rings.some(ring => ring.operationId === id), 5_000);
  await running.stop();
});

const grownOld = (count: number, name: string) =>
  house.testDatabase.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, finished_at)
     SELECT $1, gen_random_uuid(), 'test.work', 'fast', $2, 'thing', gen_random_uuid(), $4, '{}', 'succeeded',
            now() - n * interval '1 day'
       FROM generate_series(1, $3) AS g, LATERAL (SELECT CASE WHEN g > 100 THEN 31 ELSE 29 END AS n) AS age`,
    [house.tenantId, house.backendId, count, name],
  );
const named = async (name: string): Promise<number> =>
  (await house.testDatabase.query('SELECT FROM trivet.operation WHERE resource_name = $1', [name])).length;

it('forgets old operations as fast as they grow old', async () => {
  await grownOld(2500, 'old');
  start(new RememberingDoorbell(), operationRetention(house.database));
  await until('only the younger ones are left', async () => (await named('old')) === 100, 5_000);
});

it('forgets all that is due in one run, in portions, and says so when the run is over before', async () => {
  const { signal } = new AbortController();
  await grownOld(1300, 'long-gone');
  const retention = (roundMs: number) => operationRetention(house.database, { portion: 250, roundMs });
  expect(await retention(0).run(signal)).toBe('more');
  expect(await named('long-gone')).toBe(1050);
  expect(await retention(60_000).run(signal)).toBeUndefined();
  expect(await named('long-gone')).toBe(100);
});

it('forgets the items of a bulk in portions, before its operation', async () => {
  const { signal } = new AbortController();
  const bulk = randomUUID();
  await house.testDatabase.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request, state, finished_at)
     VALUES ($1, $2, 'bulk.run', 'destroy', $3, 'bulk', $2, 'a-bulk', '{}', 'succeeded', now() - interval '40 days')`,
    [house.tenantId, bulk, house.backendId],
  );
  await house.testDatabase.query(
    `INSERT INTO trivet.bulk_item (tenant_id, bulk_id, nth, subject_id, name, state)
     SELECT $1, $2, n, gen_random_uuid(), '', 'done' FROM generate_series(1, 700) AS n`,
    [house.tenantId, bulk],
  );
  const left = async () =>
    (await house.testDatabase.query('SELECT FROM trivet.bulk_item WHERE bulk_id = $1', [bulk])).length;
  const retention = (roundMs: number) => operationRetention(house.database, { portion: 250, roundMs });
  expect(await retention(0).run(signal)).toBe('more');
  expect({ items: await left(), bulks: await named('a-bulk') }).toEqual({ items: 450, bulks: 1 });
  expect(await retention(60_000).run(signal)).toBeUndefined();
  expect({ items: await left(), bulks: await named('a-bulk') }).toEqual({ items: 0, bulks: 0 });
});

it('takes no share of a round from one class for another, however many of its operations nobody answers', async () => {
  const own = await EngineHouse.create();
  try {
    const tenants = 30;
    await own.testDatabase.query(
      `WITH made AS (INSERT INTO trivet.tenant (id, name) SELECT gen_random_uuid(), 'silent-' || n FROM generate_series(1, $1) AS n
                     RETURNING id),
            stores AS (INSERT INTO trivet.backend (tenant_id, id, name, kind, config)
                       SELECT id, gen_random_uuid(), 'b', 'fake', '{}' FROM made RETURNING tenant_id, id)
       INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request,
                                     place, dispatch_no, dispatched_at)
       SELECT tenant_id, gen_random_uuid(), 'test.work', 'index', id, 'thing', gen_random_uuid(), 'indexed', '{}',
              n, 1, now() - interval '1 hour'
         FROM stores, generate_series(1, 64) AS n`,
      [tenants],
    );
    const retried = await own.accept(randomUUID(), { cap: 0 });
    const doorbell = new RememberingDoorbell();
    const reconciler = new Reconciler(own.database, doorbell, () => {}, { roundMs: 1_000, cap: 64, kinds: KINDS });
    await reconciler.run();
    expect(doorbell.rings.map(({ operationId }) => operationId)).toContain(retried);
    const rung = () => new Set(doorbell.rings.map(({ operationId }) => operationId)).size;
    // As long as each round comes to others, all have been rung once when there were as many rounds as that takes.
    while (rung() < tenants * 64 + 1) {
      const before = rung();
      await reconciler.run();
      expect(rung()).toBeGreaterThan(before);
    }
  } finally {
    await own.close();
  }
});
