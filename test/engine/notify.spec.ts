import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewOperation } from '#operations/accepting/accept';
import type { Handler } from '#operations/definitions/handler';
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
  for (const channel of ['trivet_done', 'trivet_succeeded', ...QUEUE_CLASSES.map(ringChannel), 'marker'])
    await listener.query(`LISTEN ${channel}`);
});
afterAll(async () => {
  await listener?.end();
  await house?.close();
});

it('is sent by the end of an operation that is waited for, and says the operation, and that it has succeeded, and nothing else', async () => {
  const handler = (kind: string, result?: string): Handler => ({
    kind,
    steps: [{ name: 'one', run: async () => undefined }],
    succeed: () => result,
    fail: () => {},
  });
  const handlers = [handler('test.work', 'a result that no channel may carry'), handler('test.other')];
  const runner = house.runner(handlers, house.manager(60_000).manager);
  const accept = (options: Partial<NewOperation>) => house.accept(randomUUID(), options);
  const [alone, waited, plainAlone, ...plain] = [
    ...[await accept({ unattended: true }), await accept({})],
    await accept({ kind: 'test.other', unattended: true }),
    ...[await accept({ kind: 'test.other' }), await accept({ kind: 'test.other' })],
  ];
  for (const id of [alone, waited, plainAlone]) await runner.run(id!);
  await Promise.all(plain.map(id => runner.run(id)));
  for (const id of [alone, waited, plainAlone, ...plain]) expect((await house.row(id!)).state).toBe('succeeded');
  // Notifications of one database come in the order of their commits.
  await house.testDatabase.query("SELECT pg_notify('marker', '')");
  await until('all has been heard', () => heard.some(({ channel }) => channel === 'marker'));
  const succeeded = heard.filter(({ channel }) => channel === 'trivet_succeeded');
  expect(succeeded.flatMap(({ payload }) => payload!.split(',')).sort()).toEqual([...plain].sort());
  // Before what is told of them one by one: who hears that has nothing to read any more.
  for (const { payload } of succeeded)
    for (const id of payload!.split(','))
      expect(heard.findIndex(one => one.payload === payload)).toBeLessThan(
        heard.findIndex(one => one.channel === 'trivet_done' && one.payload === id),
      );
  const done = heard.filter(({ channel }) => channel === 'trivet_done').map(({ payload }) => payload);
  expect(done.sort()).toEqual([waited, ...plain].sort());
  expect(heard.at(-1)).toEqual({ channel: 'marker', payload: '' });
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
