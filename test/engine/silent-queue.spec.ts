import { randomBytes, randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import { queueName, type RingJob } from '#operations/queue/doorbell';
import { OperationWorker } from '#operations/workers/worker';
import { redispatchTotal } from '#platform/metrics/metrics';
import { EngineHouse } from '#test/engine/engine-house';
import { parts, until } from '#test/support/parts';

/** A Redis that takes every ring and passes none on: somebody paused its queue by a tool of BullMQ's. */
const prefix = `test-${randomBytes(4).toString('hex')}`;
const work: Handler = { kind: 'test.work', steps: [], succeed: () => undefined, fail: () => {} };
const options = () => ({
  database: house.database,
  handlers: [work],
  probeBackend: async () => {},
  redisPrefix: prefix,
  leaseMs: 3_000,
  reconcileMs: 50,
  concurrency: 8,
  tenantCap: 32,
});
let house: EngineHouse;
let redis: Redis;
let queue: Queue;
let worker: OperationWorker;
beforeAll(async () => {
  house = await EngineHouse.create();
  const { url } = parts().redis!;
  redis = new Redis(url, { maxRetriesPerRequest: null });
  queue = new Queue(queueName('fast'), { connection: redis, prefix, skipVersionCheck: true });
  await queue.pause();
  worker = new OperationWorker({ ...options(), redis: url });
  worker.start();
});
afterAll(async () => {
  await worker?.stop(1_000);
  await queue?.close();
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
  await house?.close();
});

it('holds up nothing: what a ring did not bring anybody to is run by who looks', async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => house.accept(randomUUID(), { cap: 0 })));
  await until('all have ended', async () =>
    (await Promise.all(ids.map(id => house.row(id)))).every(({ state }) => state === 'succeeded'),
  );
  const rung = (await queue.getWaiting()).flatMap(job => (job.data as RingJob).operationIds);
  expect(new Set(rung)).toEqual(new Set(ids));
  // What the alert on lost rings looks at.
  expect((await redispatchTotal.get()).values[0]!.value).toBeGreaterThanOrEqual(ids.length);
});

it('without Redis too, lets no class keep the places of another', async () => {
  let inside = 0;
  let end = () => {};
  const ended = new Promise<undefined>(resolve => {
    end = () => resolve(undefined);
  });
  const held: Handler = {
    kind: 'test.held',
    steps: [
      {
        name: 'hold',
        run: () => {
          inside++;
          return ended;
        },
      },
    ],
    succeed: () => undefined,
  };
  const alone = new OperationWorker({ ...options(), handlers: [work, held], redis: 'none', concurrency: 2 });
  // Whoever runs here must be alone with its operations.
  await worker.stop(1_000);
  alone.start();
  try {
    for (let n = 0; n < 2; n++) await house.accept(randomUUID(), { kind: 'test.held', class: 'copy' });
    await until('copies have all the places that they may have', () => inside === 2);
    const id = await house.accept(randomUUID());
    await until('another class is worked for', async () => (await house.row(id)).state === 'succeeded', 5_000);
    expect(inside).toBe(2);
  } finally {
    end();
    await alone.stop(1_000);
  }
});
