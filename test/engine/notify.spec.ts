import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QUEUE_CLASSES } from '#operations/operation';
import { ringChannel } from '#operations/queue/doorbell';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

/** NOTIFY makes commits queue behind each other (invariant E6): only an end that somebody waits for may send one. */
let house: EngineHouse;
let listener: pg.Client;
const heard: { channel: string; payload?: string }[] = [];
beforeAll(async () => {
  house = await EngineHouse.create();
  listener = new pg.Client(house.testDatabase.superuserUrl);
  listener.on('notification', ({ channel, payload }) => heard.push({ channel, payload }));
  await listener.connect();
  for (const channel of ['trivet_done', ...QUEUE_CLASSES.map(ringChannel), 'marker'])
    await listener.query(`LISTEN ${channel}`);
});
afterAll(async () => {
  await listener?.end();
  await house?.close();
});

it('is sent once, by the end of an operation that is waited for, and says the operation and nothing else', async () => {
  const handler = {
    kind: 'test.work',
    begin: async () => undefined,
    steps: [{ name: 'one', point: async () => {}, run: async () => undefined }],
    succeed: () => 'a result that no channel may carry',
    fail: () => {},
  };
  const runner = house.runner([handler], house.manager(60_000).manager);
  const [waited, alone] = [await house.accept(randomUUID()), await house.accept(randomUUID(), { unattended: true })];
  for (const id of [alone, waited]) await runner.run(id);
  for (const id of [alone, waited]) expect((await house.row(id)).state).toBe('succeeded');
  // Notifications of one database come in the order of their commits.
  await house.testDatabase.query("SELECT pg_notify('marker', '')");
  await until('all has been heard', () => heard.some(({ channel }) => channel === 'marker'));
  expect(heard).toEqual([
    { channel: 'trivet_done', payload: waited },
    { channel: 'marker', payload: '' },
  ]);
});

it('tells who listens that its connection went away before it is back', async () => {
  const told: string[] = [];
  const listening = house.database.listen(
    ['trivet_lost'],
    () => {},
    () => told.push('connected'),
    () => told.push('lost'),
  );
  await until('it listens', () => told.length === 1);
  await house.testDatabase.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN trivet_lost%' AND pid <> pg_backend_pid()",
  );
  await until('it listens again', () => told.length === 3);
  expect(told).toEqual(['connected', 'lost', 'connected']);
  await listening.stop();
});
