import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Ring } from '#operations/operation';
import { sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, KINDS, RememberingDoorbell } from '#test/engine/engine-house';

/** What the reconciler and whoever ends an operation hand out, in which order and how much of it (invariant E9). */
const DUE = sqlFile('operations', 'due');
const REDISPATCH_MS = 60_000;

const houses: EngineHouse[] = [];
let house: EngineHouse;
beforeEach(async () => {
  house = await EngineHouse.create();
  houses.push(house);
});
afterAll(() => Promise.all(houses.map(one => one.close())));

const due = (cap: number, limit = 500, redispatchMs = REDISPATCH_MS) =>
  house.database.engine<Ring & { again: boolean }>(DUE, [cap, redispatchMs, limit, KINDS, '']);

/** Accepted while there was no room: nobody has been told of them. */
const waiting = async (count: number, options: { tenantId?: string; backendId?: string } = {}): Promise<string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await house.accept(randomUUID(), { cap: 0, ...given(options) }));
  return ids;
};
const given = (options: { tenantId?: string; backendId?: string }) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
const ids = (rings: readonly Ring[]): string[] => rings.map(ring => ring.operationId);
const backdate = (where: string, params: unknown[] = []) =>
  house.testDatabase.query(
    `UPDATE trivet.operation SET dispatched_at = now() - interval '1 hour' WHERE ${where}`,
    params,
  );

describe('the reconciler', () => {
  it('takes the first of every backend before the second of any', async () => {
    const backends = [house.backendId, uuidv7(), uuidv7()];
    const queues: string[][] = [];
    for (const backendId of backends) queues.push(await waiting(5, { backendId }));
    const first = ids(await due(100, 3));
    expect(first.sort()).toEqual(queues.map(queue => queue[0]).sort());
    const second = ids(await due(100, 3));
    expect(second.sort()).toEqual(queues.map(queue => queue[1]).sort());
  });

  it('gives no tenant and backend more than its cap, whatever is under way counted in', async () => {
    const accepted = [await house.accept(randomUUID()), await house.accept(randomUUID())];
    await waiting(10);
    expect(await due(4)).toHaveLength(2);
    expect(await due(4)).toEqual([]);
    const { manager } = house.manager(60_000);
    expect(await manager.claim(accepted[0]!)).toBeDefined();
    expect(await due(4)).toEqual([]);
    expect(await due(5)).toHaveLength(1);
  });

  it('hands out once, and again only what nobody has taken up for long or whose lease is over', async () => {
    const [lost, taken, abandoned] = await waiting(3);
    expect(ids(await due(10)).sort()).toEqual([lost, taken, abandoned].sort());
    expect(await due(10)).toEqual([]);
    const { manager } = house.manager(60_000);
    await manager.claim(taken!);
    await house.manager(1).manager.claim(abandoned!);
    await house.expired(abandoned!);
    await backdate('true');
    const again = await due(10);
    expect(ids(again).sort()).toEqual([lost, abandoned].sort());
    expect(again.every(ring => ring.again && ring.dispatchNo === 2)).toBe(true);
  });

  it('leaves alone what has a time to wait for, a circuit that is open, or somebody before it in line', async () => {
    const resource = randomUUID();
    const head = await house.accept(resource, { cap: 0 });
    const behind = await house.accept(resource, { cap: 0 });
    const [later] = await waiting(1);
    await house.testDatabase.query(
      "UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1",
      [later],
    );
    const down = uuidv7();
    await house.testDatabase.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'down', 'fake', '{}')",
      [house.tenantId, down],
    );
    const [kept] = await waiting(1, { backendId: down });
    await house.testDatabase.query(
      "INSERT INTO trivet.backend_circuit (tenant_id, backend_id, open_until, reason) VALUES ($1, $2, now() + interval '1 hour', 'down')",
      [house.tenantId, down],
    );
    expect(ids(await due(10))).toEqual([head]);
    // Half open: nobody probes it, so work is tried on it.
    await house.testDatabase.query('UPDATE trivet.backend_circuit SET open_until = now()');
    expect(ids(await due(10))).toEqual([kept]);
    expect((await house.row(behind)).dispatched_at).toBeNull();
  });

  it('takes up the holder that died, although a negation waits behind it', async () => {
    const resource = randomUUID();
    const dead = await house.accept(resource);
    await house.manager(1).manager.claim(dead);
    await house.accept(resource, { kind: 'test.undo', negates: ['test.work'] });
    await house.expired(dead);
    await backdate('id = $1', [dead]);
    expect(ids(await due(10))).toEqual([dead]);
  });

  it('shares the work between reconcilers that look at the same moment', async () => {
    const all = await waiting(40);
    const rounds = await Promise.all([due(100), due(100), due(100), due(100)]);
    const handed = rounds.flatMap(ids);
    expect(new Set(handed).size).toBe(handed.length);
    expect([...handed, ...ids(await due(100))].sort()).toEqual([...all].sort());
  });
});

describe('who ends', () => {
  const handler = { kind: 'test.work', steps: [], succeed: () => undefined, fail: () => {} };
  const CAP = 3;

  it('passes its place on, and never more places than there are', async () => {
    const first = [
      await house.accept(randomUUID()),
      await house.accept(randomUUID()),
      await house.accept(randomUUID()),
    ];
    await waiting(20);
    const doorbell = new RememberingDoorbell();
    const { manager } = house.manager(60_000);
    const runner = house.runner([handler], manager, doorbell, CAP);
    const underWay = async () =>
      (await house.testDatabase.query('SELECT FROM trivet.operation WHERE place IS NOT NULL')).length;
    const ready = [...first];
    let most = 0;
    for (let ran = 0; ran < 23; ) {
      const batch = ready.splice(0);
      expect(batch.length).toBeGreaterThan(0);
      await Promise.all(batch.map(id => runner.run(id)));
      ran += batch.length;
      most = Math.max(most, await underWay());
      ready.push(...ids(doorbell.rings.splice(0)));
    }
    expect(most).toBeLessThanOrEqual(CAP);
    expect(await house.testDatabase.query("SELECT FROM trivet.operation WHERE state <> 'succeeded'")).toEqual([]);
  });

  it('wakes the next in line at its resource and nobody else there', async () => {
    const resource = randomUUID();
    const [head, next] = [await house.accept(resource), await house.accept(resource), await house.accept(resource)];
    const doorbell = new RememberingDoorbell();
    await house.runner([handler], house.manager(60_000).manager, doorbell, CAP).run(head!);
    expect(ids(doorbell.rings)).toEqual([next]);
  });

  it.each([
    ['of another class', (resource: string) => house.accept(resource, { class: 'destroy' })],
    ['that was rung before its turn', async (resource: string) => house.placed(await house.accept(resource))],
  ])('wakes the next in line %s, although nobody waits for a place in its own', async (_, behind) => {
    const resource = randomUUID();
    const head = await house.accept(resource);
    const next = await behind(resource);
    const doorbell = new RememberingDoorbell();
    await house.runner([handler], house.manager(60_000).manager, doorbell, CAP).run(head);
    expect(ids(doorbell.rings)).toEqual([next]);
  });
});
