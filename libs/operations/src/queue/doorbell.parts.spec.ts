import { randomBytes } from 'node:crypto';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Ring } from '#operations/operation';
import { BullDoorbell, queueName } from '#operations/queue/doorbell';
import { uuidv7 } from '#platform/uuid';
import { parts, until } from '#test/support/parts';

/** Whoever accepts work must never wait for Redis longer than this. */
const BOUND_MS = 1_500;
const prefix = `test-${randomBytes(4).toString('hex')}`;
const ring = (): Ring => ({ operationId: uuidv7(), class: 'fast', dispatchNo: 1 });

/** Stands before Redis; frozen, it takes what comes and passes on nothing, like a host that lost its route. */
class Gate {
  frozen = false;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async open(target: URL): Promise<Gate> {
    const server = createServer();
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(target);
    url.port = String((server.address() as { port: number }).port);
    const gate = new Gate(server, url.href);
    server.on('connection', near => {
      const far = dial(Number(target.port), target.hostname);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        gate.sockets.add(from);
        from.on('data', chunk => {
          if (!gate.frozen) to.write(chunk);
        });
        from.on('error', () => {});
        from.on('close', () => to.destroy());
      }
    });
    return gate;
  }

  /** Ends what was cut in half: both sides must begin anew. */
  thaw(): void {
    this.frozen = false;
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise(resolve => this.server.close(resolve));
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const started = performance.now();
  return { result: await work(), ms: performance.now() - started };
}

let redis: Redis;
let gate: Gate;
beforeAll(async () => {
  const { url } = parts().redis!;
  redis = new Redis(url);
  gate = await Gate.open(new URL(url));
});
afterAll(async () => {
  const keys = await redis.keys(`${prefix}:*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
  await gate.close();
});

describe('the doorbell', () => {
  it('is heard, returns in time when Redis falls silent, and is heard again afterwards', async () => {
    const doorbell = new BullDoorbell(gate.url, prefix);
    try {
      const first = ring();
      await until('Redis takes work', () => doorbell.ring([first]));
      const waiting = await redis.keys(`${prefix}:${queueName('fast')}:${first.operationId}-1`);
      expect(waiting).toHaveLength(1);

      gate.frozen = true;
      const silent = await timed(() => doorbell.ring([ring()]));
      expect(silent.result).toBe(false);
      expect(silent.ms).toBeLessThan(BOUND_MS);
      const many = await timed(() => Promise.all(Array.from({ length: 50 }, () => doorbell.ring([ring()]))));
      expect(many.result).toEqual(Array(50).fill(false));
      // The silence is known by now: nobody waits for it a second time.
      expect(many.ms).toBeLessThan(BOUND_MS / 2);

      gate.thaw();
      await until('Redis takes work again', () => doorbell.ring([ring()]));
    } finally {
      await doorbell.close();
    }
  });

  it('says at once that nobody hears it where no Redis is, and closes', async () => {
    const doorbell = new BullDoorbell('redis://127.0.0.1:1', prefix);
    const absent = await timed(() => doorbell.ring([ring()]));
    expect(absent.result).toBe(false);
    expect(absent.ms).toBeLessThan(BOUND_MS);
    expect((await timed(() => doorbell.close())).ms).toBeLessThan(BOUND_MS);
  });

  it('closes in time while Redis is silent', async () => {
    gate.frozen = true;
    const doorbell = new BullDoorbell(gate.url, prefix);
    expect((await timed(() => doorbell.ring([ring()]))).result).toBe(false);
    expect((await timed(() => doorbell.close())).ms).toBeLessThan(BOUND_MS);
    gate.thaw();
  });

  it('puts nothing but the operations into Redis', async () => {
    const doorbell = new BullDoorbell(gate.url, prefix);
    const one = ring();
    await until('Redis takes work', () => doorbell.ring([one]));
    const { data } = await redis.hgetall(`${prefix}:${queueName('fast')}:${one.operationId}-1`);
    expect(JSON.parse(data!)).toEqual({ operationIds: [one.operationId] });
    // A second ring of the same dispatch is the same job.
    await doorbell.ring([one]);
    expect(await redis.keys(`${prefix}:${queueName('fast')}:${one.operationId}*`)).toHaveLength(1);
    await doorbell.close();
  });

  it('tells of what comes together by one job, and of many by several', async () => {
    const doorbell = new BullDoorbell(gate.url, prefix);
    await until('Redis takes work', () => doorbell.ring([ring()]));
    const rings = Array.from({ length: 40 }, ring);
    await Promise.all(rings.map(one => doorbell.ring([one])));
    const told: string[][] = [];
    for (const { operationId } of rings) {
      const data = await redis.hget(`${prefix}:${queueName('fast')}:${operationId}-1`, 'data');
      if (data !== null) told.push((JSON.parse(data) as { operationIds: string[] }).operationIds);
    }
    expect(told.flat()).toEqual(rings.map(({ operationId }) => operationId));
    expect(told.map(ids => ids.length)).toEqual([16, 16, 8]);
    await doorbell.close();
  });
});
