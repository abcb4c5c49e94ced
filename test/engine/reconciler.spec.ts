import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Circuits } from '#operations/circuit';
import { Reconciler } from '#operations/reconciler';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, RememberingDoorbell } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

let house: EngineHouse;
let reconciler: Reconciler | undefined;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterEach(() => reconciler?.stop());
afterAll(() => house?.close());

function start(
  doorbell: RememberingDoorbell,
  background?: (signal: AbortSignal) => Promise<void>,
  probe: (tenantId: string, backendId: string) => Promise<void> = async () => {},
): Reconciler {
  const circuits = new Circuits(house.database, probe);
  reconciler = new Reconciler(house.database, doorbell, circuits, () => {}, { everyMs: 20, cap: 10, background });
  reconciler.start();
  return reconciler;
}

it('goes on with what is due, and stops, while its background work hangs on a backend', async () => {
  const doorbell = new RememberingDoorbell();
  let told: AbortSignal | undefined;
  const running = start(doorbell, signal => {
    told = signal;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  await until('the background work began', () => told);
  const id = await house.accept(randomUUID());
  await house.testDatabase.query('UPDATE trivet.operation SET place = NULL WHERE id = $1', [id]);
  await until('it is rung', () => doorbell.rings.some(({ operationId }) => operationId === id), 5_000);
  await running.stop();
  expect(told?.aborted).toBe(true);
});

it('goes on with what is due, and stops, while a backend whose circuit is open hangs in its probe', async () => {
  const deaf = uuidv7();
  await house.testDatabase.query(
    "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'deaf', 'fake', '{}')",
    [house.tenantId, deaf],
  );
  await house.testDatabase.query(
    "INSERT INTO trivet.backend_circuit (tenant_id, backend_id, open_until) VALUES ($1, $2, now() + interval '1 hour')",
    [house.tenantId, deaf],
  );
  const doorbell = new RememberingDoorbell();
  let probed: string | undefined;
  const running = start(doorbell, undefined, async (_, backendId) => {
    probed = backendId;
    await new Promise(() => {});
  });
  await until('its probe hangs', () => probed === deaf);
  const id = await house.accept(randomUUID(), { cap: 0 });
  await until('another backend is worked for', () => doorbell.rings.some(ring => ring.operationId === id), 5_000);
  await running.stop();
});

it('forgets old operations as fast as they grow old', async () => {
  await house.testDatabase.query(
    `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                   request, state, finished_at)
     SELECT $1, gen_random_uuid(), 'test.work', 'fast', $2, 'thing', gen_random_uuid(), 'old', '{}', 'succeeded',
            now() - n * interval '1 day'
       FROM generate_series(1, 2500) AS g, LATERAL (SELECT CASE WHEN g > 100 THEN 31 ELSE 29 END AS n) AS age`,
    [house.tenantId, house.backendId],
  );
  start(new RememberingDoorbell());
  const left = "SELECT count(*)::int AS n FROM trivet.operation WHERE resource_name = 'old'";
  await until(
    'only the younger ones are left',
    async () => (await house.testDatabase.query<{ n: number }>(left))[0]?.n === 100,
    5_000,
  );
});
