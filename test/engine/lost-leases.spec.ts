import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import type { LeaseManager } from '#operations/leases/lease';
import { StorageError } from '#platform/errors';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

const SHORT_MS = 400;
const LONG_MS = 60_000;

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());
afterEach(() => {
  vi.restoreAllMocks();
});

const work = (run: () => Promise<undefined>): Handler => ({
  kind: 'test.work',
  steps: [
    { name: 'first', calls: [], run: async () => undefined },
    { name: 'second', calls: [], point: () => {}, run },
  ],
  succeed: () => undefined,
});
/** A worker that died with it: nobody renews its lease, and nobody says that he lives. */
const died = async (id: string): Promise<string> => {
  const worker = randomUUID();
  await house.manager(1, worker).manager.claim(id);
  await house.expired(id);
  return worker;
};
const crashesOf = async (id: string): Promise<number> => (await house.row(id)).crashes;

describe('a worker that lives on after it lost its lease', () => {
  it('hands the operation back, its lease as it was, and the next attempt counts no crash', async () => {
    const id = await house.accept(randomUUID());
    const { manager } = house.manager(SHORT_MS);
    const lease = (await manager.claim(id))!;
    const { lease_until } = await house.row(id);
    await manager.leave(lease);
    expect(await house.row(id)).toMatchObject({ state: 'running', lease_owner: null, lease_until });
    await house.expired(id);
    expect((await house.manager(LONG_MS).manager.claim(id))!.operation.crashes).toBe(0);
  });

  it('takes back the crash that its successor counted, once', async () => {
    const id = await house.accept(randomUUID());
    const { manager } = house.manager(SHORT_MS);
    const lease = (await manager.claim(id))!;
    await house.expired(id);
    await died(id);
    await house.manager(LONG_MS).manager.claim(id);
    expect(await crashesOf(id)).toBe(2);
    await manager.leave(lease);
    // As when the first answer did not come.
    await manager.leave(lease);
    expect(await crashesOf(id)).toBe(1);
    expect(await house.events(id)).toEqual(['accepted', 'attempt', 'attempt', 'attempt', 'lease_lost']);
  });

  it('takes nothing off where its successor counted no crash', async () => {
    const id = await house.accept(randomUUID());
    await died(id);
    const { manager } = house.manager(SHORT_MS);
    const lease = (await manager.claim(id))!;
    // As a person releases it.
    await house.testDatabase.query(
      "UPDATE trivet.operation SET state = 'pending', lease_owner = NULL, lease_until = NULL WHERE id = $1",
      [id],
    );
    await house.manager(LONG_MS).manager.claim(await house.placed(id));
    await manager.leave(lease);
    expect(await crashesOf(id)).toBe(1);
  });

  it('says so again, when the database did not hear it', async () => {
    const id = await house.accept(randomUUID());
    const { manager } = house.manager(SHORT_MS);
    const lease = (await manager.claim(id))!;
    const engine = vi.spyOn(house.database, 'engine').mockRejectedValue(new Error('the connection is gone'));
    await manager.leave(lease);
    engine.mockRestore();
    expect((await house.row(id)).lease_owner).not.toBeNull();
    manager.start();
    await until('it has said so', async () => (await house.row(id)).lease_owner === null);
  });

  /** Its worker loses it at the step `second`. */
  const lose = async (id: string, worker: string = randomUUID()): Promise<void> => {
    const lost = work(async () => {
      await house.testDatabase.query('UPDATE trivet.operation SET lease_until = now() WHERE id = $1', [id]);
      return undefined;
    });
    await house.runner([lost], house.manager(SHORT_MS, worker).manager).run(id);
    await until('it is handed back', async () => (await house.row(id)).lease_owner === null);
  };
  const succeed = (id: string) => house.runner([work(async () => undefined)], house.manager(LONG_MS).manager).run(id);

  it('parks nothing for a dozen of them', async () => {
    const id = await house.accept(randomUUID());
    for (let n = 0; n < 12; n++) await lose(id);
    await succeed(id);
    expect(await house.row(id)).toMatchObject({ state: 'succeeded', crashes: 0, attempt: 13 });
  });

  it('parks it after a hundred in a row without progress, and names the last worker and the step', async () => {
    const id = await house.accept(randomUUID());
    await lose(id);
    await lose(id);
    expect(await house.row(id)).toMatchObject({ losses: 2 });
    // What came further since begins anew.
    await house.testDatabase.query(`UPDATE trivet.operation SET progress = '{"portion": 1}' WHERE id = $1`, [id]);
    await lose(id);
    expect(await house.row(id)).toMatchObject({ losses: 1 });
    // As after many more, of which the history tells not each.
    await house.testDatabase.query('UPDATE trivet.operation SET losses = 98, attempt = 101 WHERE id = $1', [id]);
    await lose(id);
    const worker = randomUUID();
    await lose(id, worker);
    await succeed(id);
    const why = `its lease was lost 100 times in a row without any progress, each time at or after step second, the last time by worker ${worker}`;
    expect(await house.row(id)).toMatchObject({ state: 'needs_attention', crashes: 0, error: { message: why } });
  });

  describe('whose claim had no answer', () => {
    const unheard = async (id: string, manager: LeaseManager): Promise<void> => {
      const engine = house.database.engine.bind(house.database);
      vi.spyOn(house.database, 'engine').mockImplementationOnce(async (statement, params) => {
        await engine(statement, params);
        throw new StorageError('unavailable', 'the connection is gone');
      });
      await expect(manager.claim(id)).rejects.toThrow('the connection is gone');
      vi.restoreAllMocks();
      expect((await house.row(id)).lease_owner).toBe(manager.workerId);
    };

    it('gives back what it does not know to hold', async () => {
      const id = await house.accept(randomUUID());
      const { manager } = house.manager(SHORT_MS);
      await unheard(id, manager);
      await manager.tellLeft();
      expect((await house.row(id)).lease_owner).toBeNull();
      await house.expired(id);
      expect((await house.manager(LONG_MS).manager.claim(id))!.operation.crashes).toBe(0);
    });

    it('takes back the crash that its successor has counted, and keeps what it has claimed since', async () => {
      const id = await house.accept(randomUUID());
      const { manager } = house.manager(SHORT_MS);
      await unheard(id, manager);
      await house.expired(id);
      await died(id);
      expect((await manager.claim(id))!.operation.crashes).toBe(2);
      await manager.tellLeft();
      await manager.tellLeft();
      expect(await house.row(id)).toMatchObject({ crashes: 1, lease_owner: manager.workerId, fence: '3' });
    });
  });
});

it('ten workers that died are named, the last of them, and the step at which the last one left', async () => {
  const id = await house.accept(randomUUID());
  const workers: string[] = [];
  for (let n = 0; n < 8; n++) workers.push(await died(id));
  const slow = house.manager(1);
  const left = (await slow.manager.claim(id))!;
  await house.expired(id);
  workers.push(await died(id));
  const worker = randomUUID();
  const lease = (await house.manager(LONG_MS, worker).manager.claim(id))!;
  await house.testDatabase.query("UPDATE trivet.operation SET step = 'second', lease_until = now() WHERE id = $1", [
    id,
  ]);
  expect(lease.operation.crashes).toBe(10);
  await slow.manager.leave(left);
  workers.push(worker);
  await house.runner([work(async () => undefined)], house.manager(LONG_MS).manager).run(id);
  const named = workers.slice(-3).reverse().join(', ');
  expect(await house.row(id)).toMatchObject({
    state: 'needs_attention',
    error: { message: `10 workers died while they ran it, the last at or after step second: ${named}` },
  });
});
