import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EngineHouse } from '#test/engine/engine-house';
import { until } from '#test/support/parts';

const LEASE_MS = 3_000;
const LOCKED_MS = 30_000;
const OPERATIONS = 90;

let house: EngineHouse;
/** A session that the database does not end: as of a program that is not ours. */
let other: pg.Client;
beforeAll(async () => {
  house = await EngineHouse.create();
  other = new pg.Client(house.testDatabase.superuserUrl);
  await other.connect();
});
afterAll(async () => {
  await other?.end();
  await house?.close();
});

it('a row that is locked for ten leases costs its own lease, and none of the others of its worker', async () => {
  const { manager, lost } = house.manager(LEASE_MS);
  const ids: string[] = [];
  for (let n = 0; n < OPERATIONS; n++) ids.push(await house.accept(randomUUID()));
  manager.start();
  const leases = await Promise.all(ids.map(id => manager.claim(id)));
  expect(leases.every(lease => lease !== undefined)).toBe(true);
  const [locked] = ids;
  await other.query('BEGIN');
  await other.query('SELECT FROM trivet.operation WHERE id = $1 FOR UPDATE', [locked]);
  const passed = 'SELECT extract(epoch FROM clock_timestamp() - now())::float8 * 1000 AS ms';
  await until(
    'it has been locked for so long',
    async () => {
      expect(lost.filter(id => id !== locked)).toEqual([]);
      return (await other.query<{ ms: number }>(passed)).rows[0]!.ms >= LOCKED_MS;
    },
    LOCKED_MS * 2,
  );
  await other.query('ROLLBACK');
  expect(lost).toEqual([locked]);
  const [live] = await house.testDatabase.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM trivet.operation WHERE state = 'running' AND fence = 1 AND lease_until > now()",
  );
  expect(live!.n).toBe(OPERATIONS - 1);
  expect(leases.filter(lease => lease!.signal.aborted).map(lease => lease!.operation.id)).toEqual([locked]);
});

it('a row that is locked when a worker stops is not handed back, and all others are', async () => {
  const { manager } = house.manager(60_000);
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) ids.push(await house.accept(randomUUID()));
  expect((await Promise.all(ids.map(id => manager.claim(id)))).every(lease => lease !== undefined)).toBe(true);
  const owned = async () => {
    const rows = await house.testDatabase.query<{ id: string }>(
      'SELECT id FROM trivet.operation WHERE lease_owner = $1 AND lease_until > now()',
      [manager.workerId],
    );
    return rows.map(({ id }) => id);
  };
  const [locked] = ids;
  await other.query('BEGIN');
  await other.query('SELECT FROM trivet.operation WHERE id = $1 FOR UPDATE', [locked]);
  const handed = manager.handBack();
  await until('all others are handed back', async () => (await owned()).length === 1);
  await handed;
  expect(await owned()).toEqual([locked]);
  await other.query('ROLLBACK');
  await manager.handBack();
  expect(await owned()).toEqual([]);
});
