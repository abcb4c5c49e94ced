import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { slowCalls } from '#operations/administration/slow-calls';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

const found = () => slowCalls(house.database, house.tenantId);

it('a call that its worker tells of is seen until it has returned', async () => {
  const { manager } = house.manager(60_000);
  const lease = (await manager.claim(await house.accept(randomUUID())))!;
  await house.testDatabase.query("UPDATE trivet.operation SET started_at = now() - interval '90 s'");
  expect(await found()).toEqual([]);
  manager.tellSlow(lease.operation, 'stage', 60_000);
  const [calls] = await until('it is told', async () => {
    const told = await found();
    return told.length > 0 ? told : undefined;
  });
  const { id } = lease.operation;
  expect(calls).toMatchObject({ backendId: house.backendId, call: 'stage', found: 1, oldest: { id } });
  manager.tellSlow(lease.operation, 'stage', 61_000, true);
  await until('it has returned', async () => (await found()).length === 0);
});
