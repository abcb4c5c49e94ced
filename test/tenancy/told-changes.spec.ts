import { afterAll, beforeAll, expect, it } from 'vitest';
import { ToldChanges } from '#platform/database/told-changes';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

/** Rule: told changes. What people change is told by its commit, and nothing that operations write is. */
let house: EngineHouse;
let told: ToldChanges;
let heard: string[] = [];
beforeAll(async () => {
  house = await EngineHouse.create();
  told = new ToldChanges(house.database);
  told.on('doors', () => heard.push('doors'));
  told.on('queues', () => heard.push('queues'));
  // A connection that is new may have missed everything.
  await until('it listens', () => told.isConnected && heard.length === 2);
});
afterAll(async () => {
  await told?.stop();
  await house?.close();
});

const ENDPOINT = `INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id)
                  SELECT tenant_id, gen_random_uuid(), 'door', 'cosi', id FROM trivet.backend`;
const ACTIVE = "UPDATE trivet.tenant SET state = 'active'";
const PAUSE = "UPDATE trivet.queue SET paused = true WHERE class = 'copy'";

it.each([
  ['doors', "UPDATE trivet.tenant SET state = 'suspended'"],
  ['doors', ACTIVE],
  ['doors', ENDPOINT],
  ['doors', "UPDATE trivet.endpoint SET state = 'suspended'"],
  ['doors', 'DELETE FROM trivet.endpoint'],
  ['doors', "UPDATE trivet.backend SET config = '{}'"],
  ['queues', PAUSE],
])('tells of %s after %s', async (subject, statement) => {
  heard = [];
  await house.testDatabase.query(statement);
  await until('it is told', () => heard.length > 0);
  expect(heard).toEqual([subject]);
});

it('tells nothing of what the background writes into the same rows', async () => {
  heard = [];
  await house.testDatabase.query('UPDATE trivet.backend SET told_at = now()');
  // Notifications come in the order of their commits.
  await house.testDatabase.query(PAUSE);
  await until('the later one is told', () => heard.length > 0);
  expect(heard).toEqual(['queues']);
});
