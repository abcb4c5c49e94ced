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
    tx.query(FINISH, [
      [house.tenantId],
      [first],
      [lease.operation.fence],
      manager.workerId,
      ['succeeded'],
      [null],
      [null],
    ]),
  );
  const doorbell = new RememberingDoorbell();
  new LateDispatch(house.database, doorbell, 64).accepted(second);
  await until('the second one is rung', () => doorbell.rings.some(ring => ring.operationId === second.id), 5_000);
});

it('rings nobody whose pool did not answer and is down still, and whoever else is next', async () => {
  await house.testDatabase.query(
    `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, state, reason, total_bytes, used_bytes)
     VALUES ($1, $2, 'away', 0, 'down', 'it is not mounted', 100, 0)`,
    [house.tenantId, house.backendId],
  );
  const [held, other] = [operationOn(randomUUID()), operationOn(randomUUID())];
  for (const operation of [held, other]) await house.accept(operation.resourceId, operation);
  const waits = 'UPDATE trivet.operation SET place = NULL, error = $2 WHERE id = $1';
  const error = JSON.stringify({ kind: 'unavailable', message: 'it is not mounted', resource: 'pool away' });
  await house.testDatabase.query(waits, [held.id, error]);
  await house.testDatabase.query(waits, [other.id, null]);
  const doorbell = new RememberingDoorbell();
  const looks = new LateDispatch(house.database, doorbell, 64);
  for (const operation of [held, other]) looks.accepted(operation);
  const rung = () => doorbell.rings.map(ring => ring.operationId);
  await until('the other one is rung', () => rung().includes(other.id), 5_000);
  expect(rung()).not.toContain(held.id);
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
