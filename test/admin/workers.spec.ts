import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Overview } from '#admin/overview/overview';
import { sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { AdminHouse } from '#test/admin/admin-house';
import { until } from '#test/support/parts';
import { OwnRedis } from '#test/support/redis-server';

/** Workers by their heartbeats, and classes of operations that a person pauses, with the processes as they run in production. */
describe.each([true, false])('with Redis: %s', withRedis => {
  let redis: OwnRedis | undefined;
  let house: AdminHouse;
  beforeAll(async () => {
    if (withRedis) {
      redis = await OwnRedis.reserve();
      await redis.start();
    }
    const env = { TRIVET_LEASE_MS: '3000', ...(redis ? { TRIVET_REDIS_URL: redis.url } : {}) };
    house = await AdminHouse.create({ block: 'fake', redis: withRedis, env });
    await Promise.all([house.appliance.worker(), house.appliance.worker({ TRIVET_WORKER_CONCURRENCY: '7' })]);
    await until('the pools are known', async () => (await house.query('SELECT FROM trivet.pool')).length >= 2);
  });
  afterAll(async () => {
    await house?.close();
    await redis?.close();
  });
  afterEach(() => house.appliance.fakeBlock!.clearFaults());

  const workers = async () => (await house.call(house.root.viewer, 'GET', '/workers')).body.items;
  const queue = async (name: string) =>
    (await house.call(house.root.viewer, 'GET', '/queues')).body.items.find(
      (item: { class: string }) => item.class === name,
    );
  const pause = async (name: string, paused: boolean) => {
    const body = { paused, ...(paused ? { reason: 'the pool is being moved' } : {}) };
    const reply = await house.call(house.root.admin, 'PATCH', `/queues/${name}`, { body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    return reply.body;
  };
  const create = async (name: string): Promise<string> => {
    const reply = await house.call(house.acme.operator, 'POST', '/tenants/acme/volumes', {
      body: { name, size: '1048576' },
      headers: { prefer: 'wait=0' },
    });
    expect([201, 202], JSON.stringify(reply.body)).toContain(reply.status);
    const [row] = await house.query<{ id: string }>(
      "SELECT id FROM trivet.operation WHERE kind = 'volume.create' AND resource_name = $1",
      [name],
    );
    return row!.id;
  };
  const operation = async (id: string) =>
    (
      await house.query<{ state: string; attempt: number; class: string }>(
        'SELECT * FROM trivet.operation WHERE id = $1',
        [id],
      )
    )[0]!;

  it('lists those that live, and forgets who stops in order at once', async () => {
    await until('both have said something', async () => (await workers()).length === 2);
    expect((await workers()).map((worker: object) => worker)).toEqual(
      expect.arrayContaining(
        house.appliance.processes.map(({ pid }) =>
          expect.objectContaining({
            pid,
            host: hostname(),
            state: 'up',
            running: 0,
            version: expect.stringMatching(/^\d/),
          }),
        ),
      ),
    );
    expect((await workers()).map(({ concurrency }: { concurrency: number }) => concurrency).sort()).toEqual([128, 7]);
    const third = await house.appliance.worker();
    await until('the third has said something', async () => (await workers()).length === 3);
    await third.stop('SIGTERM');
    expect(await workers()).toHaveLength(2);
  });

  it('shows who has died as lost, and forgets it after a day', async () => {
    const doomed = await house.appliance.worker();
    await until('it has said something', async () => (await workers()).length === 3);
    await doomed.stop('SIGKILL');
    const silent = (ago: string) =>
      house.query('UPDATE trivet.worker SET seen_at = now() - $2::interval WHERE pid = $1', [doomed.pid, ago]);
    await silent('16 s');
    const lost = (await workers()).filter(({ state }: { state: string }) => state === 'lost');
    expect(lost).toEqual([expect.objectContaining({ pid: doomed.pid })]);
    const { body } = await house.call(house.root.viewer, 'GET', '/overview');
    expect(body.workers).toEqual({ up: 2, lost: 1 });
    expect(body.attention.map(({ what }: { what: string }) => what).join()).toContain(`process ${doomed.pid}`);
    await silent('25 hours');
    await until('it is forgotten', async () => (await workers()).length === 2);
  });

  it('lists what workers do by themselves, and says what is late to whom it concerns', async () => {
    const tasks = async () => (await house.call(house.root.viewer, 'GET', '/tasks')).body.items;
    await until('all have succeeded', async () => {
      const found: { lastSuccessAt: string | null }[] = await tasks();
      return found.length > 30 && found.every(({ lastSuccessAt }) => lastSuccessAt);
    });
    const ids = (await workers()).map(({ id }: { id: string }) => id).sort();
    const pools = (await tasks()).filter(({ name }: { name: string }) => name === 'pools');
    expect(pools.map(({ workerId }: { workerId: string }) => workerId).sort()).toEqual(ids);
    expect(pools[0]).toMatchObject({ scope: 'worker', state: 'ok', error: null });
    expect(await tasks()).toContainEqual(expect.objectContaining({ name: 'recycle-bin', scope: 'appliance' }));
    const ofThisGateway = { name: 'suspended-tenants', scope: 'gateway', workerId: null, state: 'ok' };
    expect(await tasks()).toContainEqual(expect.objectContaining(ofThisGateway));
    // Done hourly, and by nobody while this says it was just begun.
    const hourly = "name = 'gone-resources'";
    await house.query('UPDATE trivet.worker SET started_at = started_at - interval $$1 day$$');
    await house.query(
      `UPDATE trivet.periodic_task SET succeeded_at = now() - interval '1 day', error = 'error EIO' WHERE ${hourly}`,
    );
    expect(await tasks()).toContainEqual(
      expect.objectContaining({ name: 'gone-resources', state: 'late', error: 'error EIO' }),
    );
    const fresh = () =>
      new Overview({
        database: house.database,
        workers: house.options.workers,
        names: house.options.names,
        version: '1',
        legs: async () => [],
        certificate: () => undefined,
      });
    const seen = ({ attention }: { attention: { what: string }[] }) => attention.map(({ what }) => what).join();
    expect(seen(await fresh().read())).toMatch(/gone-resources.* has not succeeded since/);
    expect(seen(await fresh().read(house.acme.id))).not.toContain('gone-resources');
    await house.query(`UPDATE trivet.periodic_task SET succeeded_at = now(), error = NULL WHERE ${hourly}`);
    expect(seen(await fresh().read())).not.toContain('gone-resources');
  });

  it('misses as many as have died and were not started again', async () => {
    const doomed = [await house.appliance.worker(), await house.appliance.worker()];
    await until('they have said something', async () => (await workers()).length === 4);
    for (const worker of doomed) await worker.stop('SIGKILL');
    const pids = doomed.map(({ pid }) => pid);
    const left = async () => (await workers()).filter(({ pid }: { pid: number }) => pids.includes(pid)).length;
    expect(await left()).toBe(2);
    const successor = await house.appliance.worker();
    await until('it has said something', async () =>
      (await workers()).some(({ pid }: { pid: number }) => pid === successor.pid),
    );
    expect(await left()).toBe(1);
    await house.query("UPDATE trivet.worker SET seen_at = now() - interval '25 hours' WHERE pid = ANY ($1)", [pids]);
    await successor.stop('SIGTERM');
    await until('the other one is forgotten', async () => (await workers()).length === 2);
  });

  it('pauses a class for all workers: what runs ends, what comes waits, and other classes go on', async () => {
    const { fakeBlock } = house.appliance;
    const before = await create('runs-already');
    await until('it is made', async () => (await operation(before)).state === 'succeeded');
    fakeBlock!.addFault({ method: 'stage', mode: 'delay', delayMs: 1_500 });
    const running = await create('runs');
    await until('it runs', async () => (await operation(running)).state === 'running');
    const paused = await pause('fast', true);
    expect(paused).toMatchObject({
      paused: true,
      reason: 'the pool is being moved',
      changedBy: 'the-admin@appliance (token house)',
    });

    const waiting = await Promise.all(Array.from({ length: 20 }, (_, n) => create(`waits-${n}`)));
    await redis?.flushAll();
    await until('what ran has ended', async () => (await operation(running)).state === 'succeeded');
    // Another class runs to its end meanwhile.
    const [made] = await house.query<{ id: string }>("SELECT id FROM trivet.volume WHERE name = 'runs-already'");
    const deleted = await house.change(house.acme.admin, 'DELETE', `/tenants/acme/volumes/${made!.id}`);
    expect(deleted.status).toBe(204);
    for (const id of waiting)
      expect(await operation(id)).toMatchObject({ state: 'pending', attempt: 0, class: 'fast' });
    expect(await queue('fast')).toMatchObject({ paused: true, waiting: 20, running: 0 });
    expect((await queue('fast')).oldestWaitingMs).toBeGreaterThan(0);

    // Not even a worker that is new, and knows of nothing.
    const late = await house.appliance.worker();
    const [, , overview] = await Promise.all([
      redis?.flushAll(),
      until('it has looked', async () => (await workers()).length === 3),
      house.call(house.root.viewer, 'GET', '/overview'),
    ]);
    expect(overview.status).toBe(200);
    for (const id of waiting) expect((await operation(id)).attempt).toBe(0);
    expect((await pause('fast', false)).paused).toBe(false);
    await until('all are made', async () => {
      const states = await Promise.all(waiting.map(operation));
      return states.every(({ state }) => state === 'succeeded');
    });
    await late.stop('SIGTERM');
    for (const id of waiting) expect((await operation(id)).attempt).toBe(1);
    const [resumed, first] = [await house.audit('queue.resume'), await house.audit('queue.pause')];
    expect(first[0]).toMatchObject({
      tenant_name: 'appliance',
      subject_name: 'fast',
      reason: 'the pool is being moved',
    });
    expect(resumed).toHaveLength(1);
  });

  it('takes nothing of a round from others: however much of a paused class is due', async () => {
    const [id] = [uuidv7()];
    await house.query("UPDATE trivet.queue SET paused = true WHERE class = 'index'");
    const insert = (count: number, queueClass: string) =>
      house.query(
        `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                       request, next_run_at)
         SELECT $1, gen_random_uuid(), 'volume.create', $2, gen_random_uuid(), 'thing', gen_random_uuid(), 'thing', '{}',
                now() - interval '1 minute' FROM generate_series(1, $3::int)`,
        [house.beta.id, queueClass, count],
      );
    await insert(600, 'index');
    await house.query(
      `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name, request)
       VALUES ($1, $2, 'volume.create', 'copy', gen_random_uuid(), 'thing', gen_random_uuid(), 'thing', '{}')`,
      [house.beta.id, id],
    );
    const due = await house.database.engine<{ operationId: string; class: string }>(sqlFile('operations', 'due'), [
      64,
      0,
      500,
      ['volume.create'],
      '',
    ]);
    const taken = due.filter(row => row.class === 'index');
    expect(taken).toEqual([]);
    await until('the other one was dispatched', async () => {
      const [row] = await house.query<{ dispatch_no: number }>(
        'SELECT dispatch_no FROM trivet.operation WHERE id = $1',
        [id],
      );
      return row!.dispatch_no > 0;
    });
    await house.query("DELETE FROM trivet.operation WHERE resource_kind = 'thing'");
    await house.query("UPDATE trivet.queue SET paused = false WHERE class = 'index'");
  });

  it('is for administrators of the appliance alone', async () => {
    for (const path of ['/workers', '/tasks', '/queues'])
      expect((await house.call(house.acme.admin, 'GET', path)).status).toBe(403);
    const body = { paused: true };
    expect((await house.call(house.root.operator, 'PATCH', '/queues/fast', { body })).status).toBe(403);
    expect((await house.call(house.root.admin, 'PATCH', '/queues/slow', { body })).status).toBe(400);
  });
});
