import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSlowCallFigures, slowCalls } from '#operations/administration/slow-calls';
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
  expect(await readSlowCallFigures(house.database)).toEqual({ calls: {}, oldestSeconds: 0 });
  manager.tellSlow(lease.operation, 'stage', 60_000);
  const [calls] = await until('it is told', async () => {
    const told = await found();
    return told.length > 0 ? told : undefined;
  });
  const { id } = lease.operation;
  expect(calls).toMatchObject({ backendId: house.backendId, call: 'stage', found: 1, oldest: { id } });
  const figures = await readSlowCallFigures(house.database);
  expect(figures.calls).toEqual({ stage: 1 });
  expect(figures.oldestSeconds).toBeGreaterThanOrEqual(59);
  expect(figures.oldestSeconds).toBeLessThan(120);
  manager.tellSlow(lease.operation, 'stage', 61_000, true);
  await until('it has returned', async () => (await found()).length === 0);
});
