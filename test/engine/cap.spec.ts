import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { accept, type NewOperation } from '#operations/accepting/accept';
import type { Ring } from '#operations/operation';
import type { Tx, Write } from '#platform/database/database';
import { type Statement, sql, sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, KINDS, RememberingDoorbell } from '#test/engine/engine-house';

/**
 * A tenant has no more under way at one backend in one class than its cap, however many gateways accept, workers end and
 * reconcilers look at the same moment (invariant E9). Each of them is held here right before its commit, where the others
 * cannot see yet what it took.
 */
const DUE = sqlFile('operations', 'due');
const LOOK = sqlFile('operations', 'look');
const REDISPATCH_MS = 60_000;

const houses: EngineHouse[] = [];
let house: EngineHouse;
beforeEach(async () => {
  house = await EngineHouse.create();
  houses.push(house);
});
afterAll(() => Promise.all(houses.map(one => one.close())));

const places = async (): Promise<number[]> =>
  (
    await house.testDatabase.query<{ place: number }>(
      'SELECT place FROM trivet.operation WHERE place IS NOT NULL ORDER BY place',
    )
  ).map(({ place }) => place);
const placeOf = async (id: string) => (await house.row(id)).place;
const due = (cap: number) => house.database.engine<Ring>(DUE, [cap, REDISPATCH_MS, 500, KINDS, '']);
const look = (tx: Tx, cap: number) => tx.query<Ring>(LOOK, [house.tenantId, house.backendId, 'fast', [], cap]);

interface Held<T> {
  result: T;
  commit(): Promise<void>;
}

/** Runs a transaction up to its commit, and leaves it there. */
async function held<T>(url: string, work: (tx: Tx) => Promise<T>): Promise<Held<T>> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`BEGIN; SET LOCAL trivet.tenant = '${house.tenantId}'`);
  const query = async (statement: Statement, params: readonly unknown[] = []) =>
    (await client.query({ text: statement.text, values: params as unknown[] })).rows;
  const commit = async (...writes: Write[]) => {
    const results = [];
    for (const [statement, params] of writes) results.push(await query(statement, params));
    return results;
  };
  const result = await work({ query, commit } as Tx);
  return {
    result,
    commit: async () => {
      await client.query('COMMIT');
      await client.end();
    },
  };
}

const newOperation = (): NewOperation => {
  const resourceId = randomUUID();
  const slots = [{ resource: resourceId, slot: 'lifecycle', own: true }];
  const { tenantId, backendId } = house;
  const resource = { resourceKind: 'thing', resourceId, resourceName: 'thing' };
  return { id: uuidv7(), tenantId, kind: 'test.work', class: 'fast', backendId, ...resource, request: {}, slots };
};

const CAP = 2;
/** Whoever gives places away, and how many it has given before its commit. */
const takers = {
  'an accept': () =>
    held(house.testDatabase.appUrl, async tx => ((await accept(tx, newOperation(), CAP)).ring ? 1 : 0)),
  'a second look': () => held(house.testDatabase.appUrl, async tx => (await look(tx, CAP)).length),
  'a reconciler': () =>
    held(house.testDatabase.engineUrl, async tx => (await tx.query(DUE, [CAP, REDISPATCH_MS, 500, KINDS, ''])).length),
};
type Taker = keyof typeof takers;
const names = Object.keys(takers) as Taker[];

describe('the last place', () => {
  it.each(names.flatMap(first => names.map(second => ({ first, second }))))(
    'goes to one of $first and $second that do not see each other',
    async ({ first, second }) => {
      await house.accept(randomUUID(), { cap: CAP });
      for (let n = 0; n < 3; n++) await house.accept(randomUUID(), { cap: 0 });
      const one = await takers[first]();
      const two = await takers[second]();
      expect([one.result, two.result]).toEqual([1, 0]);
      await one.commit();
      await two.commit();
      expect(await places()).toEqual([1, 2]);
      expect(await due(CAP)).toEqual([]);
    },
  );

  it('is free again when who took it did not commit', async () => {
    await house.accept(randomUUID(), { cap: CAP });
    const client = new pg.Client(house.testDatabase.appUrl);
    await client.connect();
    await client.query(`BEGIN; SET LOCAL trivet.tenant = '${house.tenantId}'`);
    const { rows } = await client.query("SELECT place FROM trivet.take_places($1, $2, 'fast', $3, 9)", [
      house.tenantId,
      house.backendId,
      CAP,
    ]);
    expect(rows).toEqual([{ place: 2 }]);
    await client.end();
    await house.accept(randomUUID(), { cap: 0 });
    expect(await due(CAP)).toHaveLength(1);
  });

  it('is found again by a look younger than its lock: who took it a moment ago has committed by then', async () => {
    const TAKE = sql(
      'test_take',
      `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                     request, place)
       SELECT $1, gen_random_uuid(), 'test.work', 'fast', $2, 'thing', gen_random_uuid(), 'thing', '{}', place
         FROM trivet.take_places($1, $2, 'fast', 2000, 1)`,
    );
    const params = [house.tenantId, house.backendId];
    const taker = async () => {
      for (let n = 0; n < 150; n++) await house.database.withTenant(house.tenantId, tx => tx.commit([TAKE, params]));
    };
    await Promise.all(Array.from({ length: 8 }, taker));
    const taken = await places();
    expect(taken.length).toBeGreaterThan(100);
    expect(new Set(taken).size).toBe(taken.length);
  });

  it('is never two, whatever the statement', async () => {
    const [first, second] = [await house.accept(randomUUID()), await house.accept(randomUUID())];
    await expect(
      house.testDatabase.query('UPDATE trivet.operation SET place = $2 WHERE id = $1', [second, await placeOf(first)]),
    ).rejects.toMatchObject({ code: '23505', constraint: 'operation_place' });
  });
});

describe('a place', () => {
  const handler = { kind: 'test.work', steps: [], succeed: () => undefined, fail: () => {} };

  it('is passed on by who ends, and by many at once to as many', async () => {
    const under = [];
    for (let n = 0; n < 4; n++) under.push(await house.accept(randomUUID(), { cap: 4 }));
    for (let n = 0; n < 20; n++) await house.accept(randomUUID(), { cap: 4 });
    expect(await places()).toEqual([1, 2, 3, 4]);
    const doorbell = new RememberingDoorbell();
    const runner = house.runner([handler], house.manager(60_000).manager, doorbell, 4);
    await Promise.all(under.map(id => runner.run(id)));
    expect((await places()).length).toBe(doorbell.rings.length);
    expect(await places()).toEqual([1, 2, 3, 4].slice(0, doorbell.rings.length));
    expect(doorbell.rings.length).toBeGreaterThan(0);
  });

  it('beyond a cap that was lowered is passed on to nobody', async () => {
    const under = [];
    for (let n = 0; n < 4; n++) under.push(await house.accept(randomUUID(), { cap: 4 }));
    for (let n = 0; n < 4; n++) await house.accept(randomUUID(), { cap: 0 });
    const doorbell = new RememberingDoorbell();
    const runner = house.runner([handler], house.manager(60_000).manager, doorbell, 2);
    for (const id of [...under].reverse()) await runner.run(id);
    expect(await places()).toEqual([1, 2]);
    expect(doorbell.rings).toHaveLength(2);
  });

  it('is what a claim asks for: a ring from before is worth nothing', async () => {
    const id = await house.accept(randomUUID(), { cap: 0 });
    const { manager } = house.manager(60_000);
    expect(await manager.claim(id)).toBeUndefined();
    await due(1);
    expect((await manager.claim(id))?.operation.place).toBe(1);
  });

  it('goes back from who was dispatched before its turn, so that who is before it can run', async () => {
    const resource = randomUUID();
    const first = await house.accept(resource, { cap: 0 });
    const second = await house.placed(await house.accept(resource, { cap: 0 }));
    expect(await due(1)).toEqual([]);
    await house.testDatabase.query("UPDATE trivet.operation SET dispatched_at = now() - interval '1 hour'");
    expect(await due(1)).toEqual([]);
    expect(await placeOf(second)).toBeNull();
    expect((await due(1)).map(ring => ring.operationId)).toEqual([first]);
  });

  it('is found for each who is next in a line of its own, also in another class', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const slots = [one, two].map(resource => ({ resource, slot: 'policy', own: false }));
    const head = await house.accept(randomUUID(), { cap: 3, slots, request: { resources: [one, two] } });
    const behind = [
      await house.accept(one, { cap: 3, slots: [slots[0]!] }),
      await house.accept(two, { cap: 3, slots: [slots[1]!], class: 'destroy' }),
    ];
    expect(await Promise.all(behind.map(placeOf))).toEqual([null, null]);
    const doorbell = new RememberingDoorbell();
    await house.runner([handler], house.manager(60_000).manager, doorbell, 3).run(head);
    expect(doorbell.rings.map(ring => ring.operationId).sort()).toEqual([...behind].sort());
    expect(await Promise.all(behind.map(placeOf))).toEqual([1, 1]);
  });

  it('of its own goes to one of two who are next in the same class, and a free one to the other', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const slots = [one, two].map(resource => ({ resource, slot: 'policy', own: false }));
    const head = await house.accept(randomUUID(), { cap: 2, slots, request: { resources: [one, two] } });
    for (const [n, resource] of [one, two].entries()) await house.accept(resource, { cap: 2, slots: [slots[n]!] });
    const doorbell = new RememberingDoorbell();
    await house.runner([handler], house.manager(60_000).manager, doorbell, 2).run(head);
    expect(await places()).toEqual([1, 2]);
  });
});
