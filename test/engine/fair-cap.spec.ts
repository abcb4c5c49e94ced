import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Ring } from '#operations/operation';
import { Reconciler } from '#operations/workers/reconciler';
import { sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, KINDS, RememberingDoorbell } from '#test/engine/engine-house';

/**
 * Who has a place soon begins: where all lines of a class have more places than workers can soon begin, each has as many as make
 * that number (invariant E9).
 */
const FAIR_CAP = sqlFile('operations', 'fair_cap');
const DUE = sqlFile('operations', 'due');
const CAP = 64;
const ROUND_MS = 2_000;
const SILENT_MS = 15_000;

const houses: EngineHouse[] = [];
let house: EngineHouse;
beforeEach(async () => {
  house = await EngineHouse.create();
  houses.push(house);
});
afterAll(() => Promise.all(houses.map(one => one.close())));

const worker = (concurrency: number, silentMs = 0) =>
  house.testDatabase.query(
    `INSERT INTO trivet.worker (id, host, pid, version, concurrency, seen_at)
     VALUES (gen_random_uuid(), 'h', 1, '', $1, now() - $2 * interval '1 ms')`,
    [concurrency, silentMs],
  );
/** Another line of the tenant, at a backend of its own, with so many operations. */
const lineOf = async (count: number, cap = CAP, queueClass: 'fast' | 'copy' = 'fast'): Promise<string[]> => {
  const backendId = uuidv7();
  await house.testDatabase.query(
    "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2::uuid, $2::uuid::text, 'fake', '{}')",
    [house.tenantId, backendId],
  );
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await house.accept(randomUUID(), { cap, backendId, class: queueClass }));
  return ids;
};
const look = (cap = CAP) => house.database.engine<{ class: string; cap: number }>(FAIR_CAP, [cap, ROUND_MS, SILENT_MS]);
/** A later round. */
const roundLater = async () => {
  await house.testDatabase.query(`UPDATE trivet.fair_cap SET until = until - $1 * interval '1 ms'`, [ROUND_MS]);
  return look();
};
const placedOf = async (ids: readonly string[]) =>
  (await house.testDatabase.query('SELECT FROM trivet.operation WHERE id = ANY ($1) AND place IS NOT NULL', [ids]))
    .length;
const due = () => house.database.engine<Ring>(DUE, [CAP, 60_000, 100, KINDS, 'h']);

describe('the fair cap', () => {
  it('is the tenant cap while workers have room for all who have places', async () => {
    await worker(8);
    const [one, two] = [await lineOf(6), await lineOf(6)];
    expect(await look()).toEqual([]);
    expect(await placedOf([...one, ...two])).toBe(12);
  });

  it('shares the room among the long lines, leaves the short ones alone, and takes back what has not begun', async () => {
    await worker(8);
    const [long, longer, short] = [await lineOf(20), await lineOf(30), await lineOf(2)];
    const other = await lineOf(3, CAP, 'copy');
    // Of 12 places the short one has 2, each other 5.
    expect(await look()).toEqual([{ class: 'fast', cap: 5 }]);
    expect([await placedOf(long), await placedOf(longer), await placedOf(short), await placedOf(other)]).toEqual([
      5, 5, 2, 3,
    ]);
    // Nobody gets more by an accept or a round of the reconciler.
    expect(await due()).toEqual([]);
    const [next] = await lineOf(1);
    expect(await placedOf([next!])).toBe(1);
  });

  it('leaves who runs alone, and passes no place beyond it on', async () => {
    await worker(2);
    const lines = [await lineOf(4), await lineOf(4)];
    const { manager } = house.manager(60_000);
    const last = (await manager.claim(lines[0]!.at(-1)!))!;
    expect(last.operation.place).toBe(4);
    expect(await look()).toEqual([{ class: 'fast', cap: 2 }]);
    expect(await placedOf(lines[0]!)).toBe(3);
    const doorbell = new RememberingDoorbell();
    const runner = house.runner(
      [{ kind: 'test.work', steps: [], succeed: () => undefined, fail: () => {} }],
      manager,
      doorbell,
      CAP,
    );
    // Its place 1 goes to the next of its line; the place 4 of who ran before goes to nobody.
    await runner.run(lines[0]![0]!);
    expect(doorbell.rings).toHaveLength(1);
    doorbell.rings.length = 0;
    await house.testDatabase.query('UPDATE trivet.operation SET lease_until = now() WHERE id = $1', [
      last.operation.id,
    ]);
    await runner.run(last.operation.id);
    expect((await house.row(last.operation.id)).state).toBe('succeeded');
    expect(doorbell.rings).toEqual([]);
  });

  it('counts no worker that is silent', async () => {
    await worker(100, SILENT_MS + 1_000);
    await worker(2);
    await lineOf(9);
    expect(await look()).toEqual([{ class: 'fast', cap: 3 }]);
  });

  it('doubles when there is room again, and ends at the tenant cap', async () => {
    await worker(4);
    const ids = await lineOf(20);
    expect(await look()).toEqual([{ class: 'fast', cap: 6 }]);
    expect(await placedOf(ids)).toBe(6);
    // Another worker looks in the same round.
    expect(await look()).toEqual([]);
    await worker(100);
    expect(await roundLater()).toEqual([{ class: 'fast', cap: 12 }]);
    expect(await due()).toHaveLength(6);
    expect(await roundLater()).toEqual([{ class: 'fast', cap: 24 }]);
    expect(await roundLater()).toEqual([{ class: 'fast', cap: 48 }]);
    expect(await roundLater()).toEqual([]);
  });

  it('is none when nobody looked after it', async () => {
    await worker(1);
    await lineOf(9);
    expect(await look()).toEqual([{ class: 'fast', cap: 2 }]);
    await house.testDatabase.query('UPDATE trivet.fair_cap SET until = now()');
    expect(await due()).toHaveLength(7);
  });

  it('is looked after by the reconciler', async () => {
    await worker(1);
    const ids = await lineOf(9);
    const options = { roundMs: ROUND_MS, cap: CAP, kinds: KINDS };
    await new Reconciler(house.database, new RememberingDoorbell(), () => {}, options).run();
    expect(await placedOf(ids)).toBe(2);
  });
});
