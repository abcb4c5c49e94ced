import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Handler } from '#operations/definitions/handler';
import { isFenceLost } from '#platform/database/database';
import { sql, sqlFile } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { EngineHouse, RememberingDoorbell } from '#test/engine/engine-house';

const POINT = sqlFile('operations', 'point');
const FINISH = sqlFile('operations', 'finish');
const RENEW = sqlFile('operations', 'renew');
const LOCK_OPERATION = sql(
  'test_lock_operation',
  'SELECT FROM trivet.operation WHERE tenant_id = $1 AND id = $2 FOR UPDATE',
);
/** Long enough for a busy machine to act within it, short enough to wait for its end. */
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

const owner = async (id: string) => (await house.row(id)).lease_owner;
const point = async (id: string, fence: string) => {
  const params = [[house.tenantId], [id], [fence], await owner(id), ['step'], ['{}']];
  const rows = await house.database.withTenant(house.tenantId, tx => tx.query<{ cancelled: string[] }>(POINT, params));
  return rows.map(({ cancelled }) => ({ cancelled: cancelled.includes(id) }));
};
const finish = async (id: string, fence: string) => {
  const params = [[house.tenantId], [id], [fence], await owner(id), ['succeeded'], [null], [null]];
  const rows = await house.database.withTenant(house.tenantId, tx =>
    tx.query<{ states: Record<string, string> }>(FINISH, params),
  );
  return rows.map(({ states }) => ({ state: states[id] }));
};

const work = (run: () => Promise<undefined>): Handler => ({
  kind: 'test.work',
  steps: [{ name: 'only', calls: [], run }],
  succeed: () => undefined,
  fail: () => {},
});

describe('lease bugs that other systems had', () => {
  it('a: giving a lease up keeps the row and its fence, so the next one is higher', async () => {
    const id = await house.accept(randomUUID());
    let attempts = 0;
    const handler = work(async () => {
      attempts++;
      if (attempts === 1) throw new StorageError('unavailable', 'not now');
      return undefined;
    });
    const { manager } = house.manager(LONG_MS);
    const runner = house.runner([handler], manager);
    await runner.run(id);
    expect(await house.row(id)).toMatchObject({ state: 'pending', fence: '1', lease_owner: null });
    await house.due(id);
    await runner.run(await house.placed(id));
    expect(await house.row(id)).toMatchObject({ state: 'succeeded', fence: '2', lease_owner: null });
    expect(attempts).toBe(2);
  });

  it('b: the owner of an expired lease gets a new fence, and its old one can write nothing', async () => {
    const id = await house.accept(randomUUID());
    const worker = randomUUID();
    const before = await house.manager(SHORT_MS, worker).manager.claim(id);
    expect(before?.operation.fence).toBe('1');
    await house.expired(id);
    const after = await house.manager(LONG_MS, worker).manager.claim(id);
    expect(after?.operation).toMatchObject({ fence: '2', crashes: 1 });
    await expect(point(id, '1')).rejects.toSatisfy(isFenceLost);
    await expect(finish(id, '1')).rejects.toSatisfy(isFenceLost);
    expect(await point(id, '2')).toHaveLength(1);
  });

  it('c: renewing makes no lease that nobody took, not even with the fence that a new row has', async () => {
    const id = await house.accept(randomUUID());
    const worker = randomUUID();
    expect(await house.database.engine(RENEW, [worker, LONG_MS, [id], ['0']])).toEqual([]);
    expect(await house.row(id)).toMatchObject({ state: 'pending', fence: '0', lease_owner: null, lease_until: null });
    await expect(point(id, '0')).rejects.toSatisfy(isFenceLost);
    await expect(finish(id, '0')).rejects.toSatisfy(isFenceLost);
  });

  it('c: renewing keeps no lease alive that its worker has let go without a write', async () => {
    const [left, kept] = [await house.accept(randomUUID()), await house.accept(randomUUID())];
    const { manager } = house.manager(SHORT_MS * 4);
    const leftLease = await manager.claim(left);
    const keptLease = await manager.claim(kept);
    const before = [await house.row(left), await house.row(kept)];
    manager.release(leftLease!);
    await manager.renew();
    const after = [await house.row(left), await house.row(kept)];
    expect(after[0]!.lease_until).toEqual(before[0]!.lease_until);
    expect(after[1]!.lease_until!.getTime()).toBeGreaterThan(before[1]!.lease_until!.getTime());
    expect(keptLease!.signal.aborted).toBe(false);
  });

  it('c: renewing waits for no row, and loses none that a commit has at that moment', async () => {
    const [held, other] = [await house.accept(randomUUID()), await house.accept(randomUUID())];
    const { manager, lost } = house.manager(LONG_MS);
    const [heldLease, otherLease] = [await manager.claim(held), await manager.claim(other)];
    const before = [await house.row(held), await house.row(other)];
    await house.database.withTenant(house.tenantId, async tx => {
      await tx.query(LOCK_OPERATION, [house.tenantId, held]);
      await manager.renew();
    });
    const after = [await house.row(held), await house.row(other)];
    expect(after[0]!.lease_until).toEqual(before[0]!.lease_until);
    expect(after[1]!.lease_until!.getTime()).toBeGreaterThan(before[1]!.lease_until!.getTime());
    expect([lost, heldLease!.signal.aborted, otherLease!.signal.aborted]).toEqual([[], false, false]);
  });

  it('d: the fence tells acquisitions apart, also of one worker and one operation', async () => {
    const id = await house.accept(randomUUID());
    const [one, two] = [randomUUID(), randomUUID()];
    const fences: string[] = [];
    for (const worker of [one, two, one]) {
      const lease = await house.manager(fences.length < 2 ? SHORT_MS : LONG_MS, worker).manager.claim(id);
      fences.push(lease!.operation.fence);
      if (fences.length < 3) await house.expired(id);
    }
    expect(fences).toEqual(['1', '2', '3']);
    expect((await house.row(id)).lease_owner).toBe(one);
    await expect(finish(id, '1')).rejects.toSatisfy(isFenceLost);
    expect(await finish(id, '3')).toMatchObject([{ state: 'succeeded' }]);
  });

  it('e: expiry follows the clock of the database, whatever the worker believes', async () => {
    const id = await house.accept(randomUUID());
    const hour = 3_600_000;
    const real = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => real() + hour);
    expect(await house.manager(LONG_MS).manager.claim(id)).toBeDefined();
    vi.restoreAllMocks();
    const [row] = await house.testDatabase.query<{ left: number }>(
      'SELECT extract(epoch FROM lease_until - now())::float8 * 1000 AS left FROM trivet.operation WHERE id = $1',
      [id],
    );
    expect(row!.left).toBeGreaterThan(0);
    expect(row!.left).toBeLessThanOrEqual(LONG_MS);
  });

  it('e: only a live lease is renewed; the holder of a dead one learns it and stops', async () => {
    const id = await house.accept(randomUUID());
    const { manager, lost } = house.manager(SHORT_MS);
    const lease = await manager.claim(id);
    await house.expired(id);
    await manager.renew();
    expect(lost).toEqual([id]);
    expect(lease!.signal.aborted).toBe(true);
    expect(lease!.remainingMs()).toBe(0);
    expect((await house.row(id)).live).toBe(false);
    await expect(manager.ensure(lease!, 1)).rejects.toThrow(/lease of operation .* is lost/);
  });

  it('tells a lease that was taken over from its own, although both are live', async () => {
    const id = await house.accept(randomUUID());
    const worker = randomUUID();
    const stale = house.manager(SHORT_MS, worker);
    const lease = await stale.manager.claim(id);
    await house.expired(id);
    await house.manager(LONG_MS, worker).manager.claim(id);
    const { lease_until } = await house.row(id);
    await stale.manager.renew();
    expect(stale.lost).toEqual([id]);
    expect(lease!.signal.aborted).toBe(true);
    expect((await house.row(id)).lease_until).toEqual(lease_until);
  });
});

describe('who may run', () => {
  it('gives a resource to one of 32 claims at once, by the unique index', async () => {
    const shared = randomUUID();
    const ids: string[] = [];
    for (let n = 0; n < 32; n++) {
      const own = randomUUID();
      const slots = [
        { resource: own, slot: 'lifecycle', own: true },
        { resource: shared, slot: 'policy', own: false },
      ];
      ids.push(await house.placed(await house.accept(own, { slots })));
    }
    const workers = [house.manager(LONG_MS), house.manager(LONG_MS)];
    const left = new Set(ids);
    let winners = 0;
    while (left.size > 0) {
      const claims = await Promise.all([...left].map((id, n) => workers[n % 2]!.manager.claim(id)));
      const won = claims.filter(lease => lease !== undefined);
      const held = await house.testDatabase.query<{ n: number }>(
        'SELECT count(*)::int AS n FROM trivet.operation_slot WHERE resource_id = $1 AND held',
        [shared],
      );
      expect(held).toEqual([{ n: won.length }]);
      // All may lose to each other once; nobody may share.
      expect(won.length).toBeLessThanOrEqual(1);
      for (const lease of won) {
        winners++;
        await finish(lease.operation.id, lease.operation.fence);
        left.delete(lease.operation.id);
      }
    }
    expect(winners).toBe(32);
  });

  it('refuses a second holder of a slot, whatever the statement', async () => {
    const resource = randomUUID();
    const [first] = [await house.accept(resource), await house.accept(resource)];
    await house.manager(LONG_MS).manager.claim(first!);
    await expect(
      house.testDatabase.query('UPDATE trivet.operation_slot SET held = true WHERE resource_id = $1', [resource]),
    ).rejects.toMatchObject({ code: '23505', constraint: 'operation_slot_held' });
  });

  it('keeps the order of the line at the own resource', async () => {
    const resource = randomUUID();
    const [first, second, third] = [
      await house.accept(resource),
      await house.accept(resource),
      await house.accept(resource),
    ];
    const { manager } = house.manager(LONG_MS);
    expect(await manager.claim(await house.placed(third))).toBeUndefined();
    expect(await manager.claim(await house.placed(second))).toBeUndefined();
    const doorbell = new RememberingDoorbell();
    const runner = house.runner([work(async () => undefined)], manager, doorbell);
    await runner.run(first);
    expect(doorbell.rings.filter(({ operationId }) => [second, third].includes(operationId))).toEqual([
      { operationId: second, class: 'fast', host: null, dispatchNo: 1 },
    ]);
    expect(await manager.claim(await house.placed(third))).toBeUndefined();
    await runner.run(await house.placed(second));
    await runner.run(await house.placed(third));
    expect((await house.row(third)).state).toBe('succeeded');
  });

  it('lets a retrying operation keep its place at its own resource', async () => {
    const resource = randomUUID();
    const [first, second] = [await house.accept(resource), await house.accept(resource)];
    const { manager } = house.manager(LONG_MS);
    const runner = house.runner([work(() => Promise.reject(new StorageError('unavailable', 'not now')))], manager);
    await runner.run(first);
    expect((await house.row(first)).state).toBe('pending');
    expect(await manager.claim(await house.placed(second))).toBeUndefined();
  });

  it('excludes at a second resource without ordering there', async () => {
    const shared = randomUUID();
    const on = (own: string) => ({
      slots: [
        { resource: own, slot: 'lifecycle', own: true },
        { resource: shared, slot: 'policy', own: false },
      ],
    });
    const [a, b] = [randomUUID(), randomUUID()];
    const earlier = await house.accept(a, on(a));
    const later = await house.accept(b, on(b));
    const { manager } = house.manager(LONG_MS);
    const lease = await manager.claim(await house.placed(later));
    expect(lease).toBeDefined();
    expect(await manager.claim(await house.placed(earlier))).toBeUndefined();
    await finish(later, lease!.operation.fence);
    expect(await manager.claim(await house.placed(earlier))).toBeDefined();
  });

  describe('while a call that went unanswered may still take effect', () => {
    const shared = randomUUID();
    const slotsOf = (own: string) => [
      { resource: own, slot: 'lifecycle', own: true },
      { resource: shared, slot: 'policy', own: false },
    ];
    /** Its attempt has failed, and its slots are free but for the horizon of its call. */
    const unanswered = async (resource: string): Promise<string> => {
      const id = await house.accept(resource, { slots: slotsOf(resource) });
      await house.testDatabase.query('UPDATE trivet.operation SET place = NULL WHERE id = $1', [id]);
      await horizon(id, "now() + interval '1 hour'");
      return id;
    };
    const horizon = (id: string, until: string) =>
      house.testDatabase.query(`UPDATE trivet.operation_slot SET busy_until = ${until} WHERE operation_id = $1`, [id]);

    it('nobody else gets one of its resources, a negation neither', async () => {
      const resource = randomUUID();
      const id = await unanswered(resource);
      const [beside, negation] = [randomUUID(), resource];
      const others = [
        await house.accept(beside, { slots: slotsOf(beside) }),
        await house.accept(negation, { kind: 'test.undo', negates: ['test.other'] }),
      ];
      const { manager } = house.manager(LONG_MS);
      for (const other of others) expect(await manager.claim(await house.placed(other))).toBeUndefined();
      await horizon(id, 'now()');
      for (const other of others) expect(await manager.claim(other)).toBeDefined();
    });

    it('a negation that cancels it waits in its place', async () => {
      const resource = randomUUID();
      const id = await unanswered(resource);
      const negation = await house.accept(resource, { kind: 'test.undo', negates: ['test.work'] });
      expect((await house.row(id)).state).toBe('cancelled');
      expect((await house.row(negation)).place).toBeNull();
      expect(await house.manager(LONG_MS).manager.claim(await house.placed(negation))).toBeUndefined();
    });
  });

  it('lets a negation overtake what waits and wait for what runs', async () => {
    const resource = randomUUID();
    const running = await house.accept(resource);
    const { manager } = house.manager(LONG_MS);
    const lease = await manager.claim(await house.placed(running));
    const waiting = await house.accept(resource, { kind: 'test.other' });
    const negation = await house.accept(resource, { kind: 'test.undo', negates: ['test.work'] });
    expect(await manager.claim(await house.placed(negation))).toBeUndefined();
    expect(await point(running, lease!.operation.fence)).toEqual([{ cancelled: true }]);
    expect(await finish(running, lease!.operation.fence)).toMatchObject([{ state: 'cancelled' }]);
    expect(await manager.claim(await house.placed(waiting))).toBeUndefined();
    expect(await manager.claim(await house.placed(negation))).toBeDefined();
  });

  it('gives a dead holder its turn again although a negation waits, to tell it that it is cancelled', async () => {
    const resource = randomUUID();
    const running = await house.accept(resource);
    await house.manager(SHORT_MS).manager.claim(await house.placed(running));
    const negation = await house.accept(resource, { kind: 'test.undo', negates: ['test.work'] });
    await house.expired(running);
    const { manager } = house.manager(LONG_MS);
    expect(await manager.claim(await house.placed(negation))).toBeUndefined();
    const runner = house.runner([work(async () => undefined)], manager);
    await runner.run(running);
    expect(await house.row(running)).toMatchObject({ state: 'cancelled', fence: '2' });
    expect(await manager.claim(await house.placed(negation))).toBeDefined();
  });

  it('parks nothing that a negation has overtaken', async () => {
    const resource = randomUUID();
    const id = await house.accept(resource);
    let negation = '';
    const { manager } = house.manager(LONG_MS);
    const runner = house.runner(
      [
        work(async () => {
          negation = await house.accept(resource, { kind: 'test.undo', negates: ['test.work'] });
          throw new StorageError('failed_precondition', 'somebody must look', { retry: 'person' });
        }),
      ],
      manager,
    );
    await runner.run(await house.placed(id));
    expect((await house.row(id)).state).toBe('pending');
    expect(await house.events(id)).toEqual(['accepted', 'attempt', 'cancel_requested', 'retry']);
    const lease = await manager.claim(await house.placed(negation));
    await finish(negation, lease!.operation.fence);
    await house.due(id);
    await runner.run(await house.placed(id));
    expect((await house.row(id)).state).toBe('cancelled');
  });
});
