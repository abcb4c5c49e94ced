import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { acceptNew, type Slot } from '#operations/accepting/accept';
import { sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse } from '#test/engine/engine-house';

/** Of a resource that is made with its operation nobody else knows: its slots are held from the first (ADR 42). */
const CLAIM = sql('test_new_thing', 'SELECT id FROM json_to_recordset($4::json) AS new (id uuid)');

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

const slot = (resource: string, name: string, own: boolean): Slot => ({ resource, slot: name, own });

async function make(resourceId: string, slots: readonly Slot[], cap = 1_000): Promise<string> {
  const { tenantId, backendId } = house;
  const kind = { kind: 'test.work', class: 'fast', resourceKind: 'thing', resourceName: 'thing' } as const;
  const operation = { ...kind, id: uuidv7(), tenantId, backendId, resourceId, request: {}, slots };
  await house.database.withTenant(tenantId, tx =>
    acceptNew(tx, tenantId, [{ claim: CLAIM, row: { id: resourceId }, operation }], cap),
  );
  return operation.id;
}

const slotsOf = (id: string) =>
  house.testDatabase.query<{ slot: string; held: boolean; version: string }>(
    'SELECT slot, held, xmin::text AS version FROM trivet.operation_slot WHERE operation_id = $1 ORDER BY slot',
    [id],
  );

it('is held by its operation before a worker has it, and the claim writes only what is of others', async () => {
  const [mine, other] = [randomUUID(), randomUUID()];
  const slots = [slot(mine, 'lifecycle', true), slot(mine, 'policy', true), slot(other, 'zone', false)];
  const id = await make(mine, slots);
  const accepted = await slotsOf(id);
  expect(accepted.map(({ held }) => held)).toEqual([true, true, false]);
  expect(await house.manager(60_000).manager.claim(id)).toBeDefined();
  const claimed = await slotsOf(id);
  expect(claimed.map(({ held }) => held)).toEqual([true, true, true]);
  expect(claimed.slice(0, 2)).toEqual(accepted.slice(0, 2));
  expect(claimed[2]!.version).not.toBe(accepted[2]!.version);
});

it('keeps others from it while its operation waits for a place', async () => {
  const mine = randomUUID();
  const made = await make(mine, [slot(mine, 'lifecycle', true)], 0);
  // What has another resource as its own is in no line here: only who holds the slot is before it.
  const second = await house.accept(randomUUID(), { slots: [slot(mine, 'lifecycle', false)] });
  await house.placed(second);
  const { manager } = house.manager(60_000);
  expect(await manager.claim(second)).toBeUndefined();
  expect(await manager.claim(await house.placed(made))).toBeDefined();
});
