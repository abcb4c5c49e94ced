import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { NewOperation } from '#operations/accepting/accept';
import { LateDispatch } from '#operations/accepting/late-dispatch';
import { Operations } from '#operations/accepting/operations';
import { sqlFile } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, RememberingDoorbell, testWork } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

const FINISH = sqlFile('operations', 'finish');

/** An end whose transaction was open while another operation was accepted behind it does not wake that one. */
let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => house?.close());

const operationOn = (resourceId: string): NewOperation => ({
  id: uuidv7(),
  tenantId: house.tenantId,
  kind: 'test.work',
  class: 'fast',
  backendId: house.backendId,
  resourceKind: 'thing',
  resourceId,
  resourceName: 'thing',
  request: {},
  slots: [{ resource: resourceId, slot: 'lifecycle', own: true }],
});

it('finds what an end could not see, without a reconciler', async () => {
  const resource = randomUUID();
  const first = await house.accept(resource);
  const { manager } = house.manager(60_000);
  const lease = (await manager.claim(first))!;
  const second = operationOn(resource);
  await house.accept(resource, second);
  await house.database.withTenant(house.tenantId, tx =>
    tx.query(FINISH, [house.tenantId, [first], [lease.operation.fence], ['succeeded'], [null], [null]]),
  );
  const doorbell = new RememberingDoorbell();
  new LateDispatch(house.database, doorbell, 64).accepted(second);
  await until('the second one is rung', () => doorbell.rings.some(ring => ring.operationId === second.id), 5_000);
});

it('is asked for everything that is accepted in line, and for nothing that is dispatched at once', async () => {
  const asked = vi.spyOn(LateDispatch.prototype, 'accepted').mockImplementation(() => {});
  const operations = new Operations(house.database, new RememberingDoorbell(), 64);
  const resource = randomUUID();
  const caller = { tenantId: house.tenantId, backendId: house.backendId, deadline: Date.now() };
  const ids: string[] = [];
  for (let n = 0; n < 2; n++)
    await operations.submit(caller, async (_, begin, id) => {
      ids.push(id);
      await begin(testWork, { resourceId: resource, resourceName: 'thing', request: {} });
      return { value: undefined };
    });
  expect(asked.mock.calls.map(([line]) => (line as NewOperation).id)).toEqual([ids[1]]);
  await operations.close();
});
