import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Lookout } from '#operations/workers/lookout';
import { EngineHouse } from '#test/engine/engine-house';

/** What wakes the periodic tasks that look seldom by themselves: nothing that is due may be missing in it. */
let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

async function due(): Promise<string[]> {
  const woken: string[] = [];
  await new Lookout(house.database, task => woken.push(task)).run();
  return woken;
}
const change = (text: string, params: unknown[] = []) => house.testDatabase.query(text, params);

it('says nothing while nothing is due', async () => {
  expect(await due()).toEqual([]);
});

it('tells of operations that could run, and not of those whose time has not come', async () => {
  const id = await house.accept(randomUUID(), { cap: 0 });
  expect(await due()).toEqual(['due-operations']);
  await change("UPDATE trivet.operation SET next_run_at = now() + interval '1 hour' WHERE id = $1", [id]);
  expect(await due()).toEqual([]);
  const running = "UPDATE trivet.operation SET state = 'running', lease_until = now() + $2::interval WHERE id = $1";
  await change(running, [id, '1 hour']);
  expect(await due()).toEqual([]);
  await change(running, [id, '-1 second']);
  expect(await due()).toEqual(['due-operations']);
  await change("UPDATE trivet.operation SET state = 'succeeded', finished_at = now() WHERE id = $1", [id]);
  expect(await due()).toEqual([]);
});

it('tells of circuits that are not closed, and of tenants that end', async () => {
  const circuit = `INSERT INTO trivet.backend_circuit (tenant_id, backend_id, open_until) VALUES ($1, $2, now() - interval '1 hour')`;
  await change(circuit, [house.tenantId, house.backendId]);
  expect(await due()).toEqual(['circuit-probes']);
  await change('UPDATE trivet.backend_circuit SET open_until = NULL');
  await change("UPDATE trivet.tenant SET state = 'draining' WHERE id = $1", [house.tenantId]);
  expect(await due()).toEqual(['tenant-drain']);
  await change("UPDATE trivet.tenant SET state = 'active' WHERE id = $1", [house.tenantId]);
  expect(await due()).toEqual([]);
});

it('tells of schedules whose time has come, and of cuts that are not indexed', async () => {
  const { tenantId, backendId } = house;
  const [volume, template] = [randomUUID(), randomUUID()];
  await change(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes,
                                thick, destroy_on_delete, description, config)
     VALUES ($1, $2, $3, 'v', 'ready', '{}', 'x', 'main', '', 1048576, false, false, '', '{}')`,
    [tenantId, volume, backendId],
  );
  await change(`INSERT INTO trivet.protection_template (tenant_id, id, name, schedules) VALUES ($1, $2, 't', '[]')`, [
    tenantId,
    template,
  ]);
  await change(
    `INSERT INTO trivet.volume_protection (tenant_id, volume_id, template_id, schedule, next_run_at)
     VALUES ($1, $2, $3, 's', now() + interval '1 hour')`,
    [tenantId, volume, template],
  );
  expect(await due()).toEqual([]);
  await change('UPDATE trivet.volume_protection SET next_run_at = now()');
  expect(await due()).toEqual(['protection']);
  await change('DELETE FROM trivet.volume_protection');
  await change(
    `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool,
                                  folder, cut)
     VALUES ($1, $2, $3, $4, 's', 'ready', false, '', '{}', 'main', '', 1)`,
    [tenantId, randomUUID(), backendId, volume],
  );
  expect(await due()).toEqual(['change-index']);
});
