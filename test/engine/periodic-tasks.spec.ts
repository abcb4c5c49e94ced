import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { readLateTasks } from '#operations/workers/figures';
import { OperationWorker } from '#operations/workers/worker';
import { WorkerDirectory } from '#operations/workers/worker-directory';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

/** Tasks of several workers on one database: who does those of the appliance, and what is known of all of them. */
let house: EngineHouse;
const workers: OperationWorker[] = [];
beforeAll(async () => {
  house = await EngineHouse.create();
});
beforeEach(() => house.testDatabase.query('DELETE FROM trivet.periodic_task'));
afterEach(async () => {
  await Promise.all(workers.splice(0).map(worker => worker.stop(1_000)));
});
afterAll(() => house?.close());

function start(...tasks: PeriodicTask[]): OperationWorker {
  const worker = new OperationWorker({
    database: house.database,
    handlers: [],
    probeBackend: async () => {},
    redis: 'none',
    redisPrefix: 'test',
    leaseMs: 3_000,
    reconcileMs: 20,
    concurrency: 8,
    tenantCap: 32,
    tasks,
  });
  worker.start();
  workers.push(worker);
  return worker;
}
const shared = (run: PeriodicTask['run'], more: Partial<PeriodicTask> = {}): PeriodicTask => ({
  name: 'shared',
  everyMs: 0,
  scope: 'appliance',
  run,
  ...more,
});
const row = async () =>
  (
    await house.testDatabase.query<{ worker_id: string | null; succeeded_at: Date | null; error: string | null }>(
      "SELECT * FROM trivet.periodic_task WHERE name = 'shared'",
    )
  )[0];
const directory = () => new WorkerDirectory(house.database);
const heartbeat = (id: string, { tasks = [] as object[], seen = '0 s', started = '1 h' } = {}) =>
  house.testDatabase.query(
    `INSERT INTO trivet.worker (id, host, pid, version, concurrency, tasks, seen_at, started_at)
     VALUES ($1, 'elsewhere', 1, '1', 1, $2, now() - $3::interval, now() - $4::interval)
     ON CONFLICT (id) DO UPDATE SET tasks = excluded.tasks, seen_at = excluded.seen_at`,
    [id, JSON.stringify(tasks), seen, started],
  );
const forget = (id: string) => house.testDatabase.query('DELETE FROM trivet.worker WHERE id = $1', [id]);

describe('a task of the appliance', () => {
  it('is done by one worker at a time, and by each in its turn', async () => {
    const [inside, by] = [new Set<string>(), new Set<string>()];
    let [most, runs, counts] = [0, 0, false];
    const as = (name: string) =>
      shared(async () => {
        if (!counts) return;
        inside.add(name);
        by.add(name);
        most = Math.max(most, inside.size);
        // Long enough for the others to ask.
        await house.testDatabase.query('SELECT pg_sleep(0.03)');
        inside.delete(name);
        runs++;
      });
    const all = ['a', 'b', 'c'].map(name => start(as(name)));
    // Of one process each takes the one before it for one that has died.
    await Promise.all(all.map(({ tasks }) => tasks.first('shared')));
    for (const { id } of all) await heartbeat(id);
    counts = true;
    await until('all had their turns', () => by.size === 3 && runs >= 12);
    expect(most).toBe(1);
  });

  it('is free at once when its worker has died and another one took its place', async () => {
    const dead = randomUUID();
    await heartbeat(dead);
    await house.testDatabase.query(
      `INSERT INTO trivet.periodic_task (name, worker_id, begun_at, late_after_ms)
       VALUES ('shared', $1, now() - interval '1 minute', 1000)`,
      [dead],
    );
    let runs = 0;
    const other = start(shared(async () => void runs++));
    await other.tasks.first('shared');
    expect([runs, (await row())?.worker_id]).toEqual([0, dead]);
    await forget(dead);
    await until('another one does it', () => runs > 0);
  });

  it('is free when its worker is silent', async () => {
    const silent = randomUUID();
    await heartbeat(silent, { seen: '16 s' });
    await house.testDatabase.query(
      "INSERT INTO trivet.periodic_task (name, worker_id, late_after_ms) VALUES ('shared', $1, 1000)",
      [silent],
    );
    let runs = 0;
    const other = start(shared(async () => void runs++));
    await other.tasks.first('shared');
    expect(runs).toBe(1);
    await forget(silent);
  });

  it('that ends with its worker belongs to nobody, and has not succeeded', async () => {
    let told = false;
    const worker = start(
      shared(async signal => {
        await new Promise(resolve => signal.addEventListener('abort', resolve));
        told = true;
      }),
    );
    await until('it runs', async () => (await row())?.worker_id === worker.id);
    await worker.stop(5_000);
    expect(told).toBe(true);
    expect(await row()).toMatchObject({ worker_id: null, succeeded_at: null });
  });

  it('that a release does not have any more is forgotten', async () => {
    await house.testDatabase.query("INSERT INTO trivet.periodic_task (name, late_after_ms) VALUES ('of-old', 1)");
    await start(shared(async () => {})).tasks.first('shared');
    const names = await house.testDatabase.query<{ name: string }>('SELECT name FROM trivet.periodic_task');
    expect(names.map(({ name }) => name)).not.toContain('of-old');
  });
});

describe('how tasks do', () => {
  it('is known of each worker that is up and of the appliance', async () => {
    const own: PeriodicTask = { name: 'own', everyMs: 0, scope: 'worker', run: async () => {} };
    const failing = shared(async () => {
      throw Object.assign(new Error('no'), { code: 'EIO' });
    });
    const [one, two] = [start(own, failing), start(own)];
    const listed = async () => (await directory().tasks()).filter(({ name }) => ['own', 'shared'].includes(name));
    await until('both have said so', async () => {
      const found = await listed();
      return found.filter(({ lastSuccessAt }) => lastSuccessAt).length === 2 && found.some(({ error }) => error);
    });
    const found = await listed();
    expect(
      found
        .filter(({ name }) => name === 'own')
        .map(({ workerId }) => workerId)
        .sort(),
    ).toEqual([one.id, two.id].sort());
    expect(found.find(({ name }) => name === 'own')).toMatchObject({
      scope: 'worker',
      state: 'ok',
      error: null,
      durationMs: expect.any(Number),
    });
    expect(found.find(({ name }) => name === 'shared')).toMatchObject({
      scope: 'appliance',
      state: 'ok',
      error: 'error EIO',
      lastSuccessAt: null,
    });
    expect((await directory().tasks()).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['heartbeat', 'queue-pauses', 'due-operations', 'circuit-probes', 'operation-retention']),
    );
  });

  it('of a gateway is told by that gateway', async () => {
    const own = { name: 'endpoints', hasSucceeded: true, durationMs: 7, error: null, lateAfterMs: 60_000 };
    const told = async (silentMs: number) => {
      const tasks = await new WorkerDirectory(house.database, () => [{ ...own, silentMs }]).tasks();
      return tasks.filter(({ scope }) => scope === 'gateway');
    };
    const at = expect.any(Date);
    expect(await told(1)).toMatchObject([{ name: 'endpoints', workerId: null, state: 'ok', lastSuccessAt: at }]);
    expect(await told(60_001)).toMatchObject([{ name: 'endpoints', state: 'late' }]);
  });

  it('is late after a while without a success, for people and for alerts', async () => {
    const worker = randomUUID();
    const task = { name: 'own', hasSucceeded: true, durationMs: 7, error: null, lateAfterMs: 60_000 };
    const late = async () => {
      const found = (await directory().tasks()).filter(({ state }) => state === 'late').map(({ name }) => name);
      expect(await readLateTasks(house.database)).toEqual({ late: found.length });
      return found;
    };
    await heartbeat(worker, { tasks: [{ ...task, silentMs: 50_000 }] });
    expect(await late()).toEqual([]);
    // What has passed since the heartbeat counts.
    await heartbeat(worker, { tasks: [{ ...task, silentMs: 50_000 }], seen: '11 s' });
    expect(await late()).toEqual(['own']);
    await heartbeat(worker, { tasks: [{ ...task, silentMs: 70_000, hasSucceeded: false }] });
    expect((await directory().tasks())[0]).toMatchObject({ state: 'late', lastSuccessAt: null });
    await heartbeat(worker);
    const succeeded = (ago: string | null) =>
      house.testDatabase.query(
        `INSERT INTO trivet.periodic_task (name, late_after_ms, succeeded_at) VALUES ('shared', 60000, now() - $1::interval)
         ON CONFLICT (name) DO UPDATE SET succeeded_at = excluded.succeeded_at`,
        [ago],
      );
    await succeeded('59 s');
    expect(await late()).toEqual([]);
    await succeeded('61 s');
    expect(await late()).toEqual(['shared']);
    await succeeded(null);
    expect(await late()).toEqual(['shared']);
    await forget(worker);
    // Of workers that are not up the list of workers tells, and who has just come had no time.
    expect(await directory().tasks()).toEqual([]);
    await heartbeat(worker, { started: '10 s' });
    expect(await late()).toEqual([]);
    await heartbeat(worker, { seen: '16 s' });
    expect(await directory().tasks()).toEqual([]);
    await forget(worker);
  });
});
