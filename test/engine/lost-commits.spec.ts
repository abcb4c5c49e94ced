import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EngineHouse } from '#test/engine/engine-house';

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
});
afterAll(() => house?.close());

it('an operation that several gateways miss is noted once', async () => {
  const lost = [randomUUID(), randomUUID()].map(id => ({
    tenant: house.tenantId,
    id,
    kind: 'bucket.create',
    name: `lost-${id}`,
    acceptedAt: new Date().toISOString(),
  }));
  const [first] = lost;
  const note = async (given: typeof lost) => {
    const rows = await house.testDatabase.query<{ id: string }>('SELECT trivet.note_lost_operations($1::jsonb) AS id', [
      JSON.stringify(given),
    ]);
    return rows.map(({ id }) => id);
  };
  const noted = (await Promise.all([note([first!]), note(lost), note(lost)])).flat();
  expect(noted.sort()).toEqual(lost.map(({ id }) => id).sort());
  expect(await note(lost)).toEqual([]);
  const entries = await house.testDatabase.query<{ subject: string }>(
    "SELECT subject_id AS subject FROM trivet.audit_entry WHERE action = 'operation.lose'",
  );
  expect(entries.map(({ subject }) => subject).sort()).toEqual(lost.map(({ id }) => id).sort());
});
