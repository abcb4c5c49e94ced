import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FencedWrites } from '#operations/leases/fenced-writes';
import type { Lease, LeaseManager } from '#operations/leases/lease';
import { isFenceLost, type Write } from '#platform/database/database';
import { setSql, sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, RememberingDoorbell } from '#test/engine/engine-house';

/** Ends and points of several tenants share a transaction; nobody sees, pays for or waits for another's. */
const TENANTS = 6;
let house: EngineHouse;
let manager: LeaseManager;
const tenants: { tenantId: string; backendId: string }[] = [];
beforeAll(async () => {
  house = await EngineHouse.create();
  manager = house.manager(60_000).manager;
  for (let n = 0; n < TENANTS; n++) {
    const one = { tenantId: uuidv7(), backendId: uuidv7() };
    await house.testDatabase.query('INSERT INTO trivet.tenant (id, name) VALUES ($1::uuid, $1::uuid::text)', [
      one.tenantId,
    ]);
    await house.testDatabase.query(
      "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'b', 'fake', '{}')",
      [one.tenantId, one.backendId],
    );
    tenants.push(one);
  }
  await house.testDatabase.query(
    `CREATE TABLE trivet.test_mark (tenant_id uuid, id uuid, seen int, CHECK (seen IS DISTINCT FROM -1));
     ALTER TABLE trivet.test_mark ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
     CREATE POLICY tenant ON trivet.test_mark TO trivet_app USING (tenant_id = trivet.current_tenant())
       WITH CHECK (tenant_id = trivet.current_tenant());
     GRANT ALL ON trivet.test_mark TO trivet_app`,
  );
});
afterAll(() => house?.close());

/** What it sees of a table of tenants, and of their operations, while it writes. */
const MARK = setSql(
  'test_mark_seen',
  `INSERT INTO trivet.test_mark (tenant_id, id, seen)
   SELECT $1, id, (SELECT count(DISTINCT tenant_id) FROM trivet.operation) FROM unnest($2::uuid[]) AS id`,
);
const BREAK = sql('test_mark_break', 'INSERT INTO trivet.test_mark (tenant_id, id, seen) VALUES ($1, $2, -1)');

const leased = async (count = 1): Promise<Lease[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) for (const one of tenants) ids.push(await house.accept(randomUUID(), one));
  return (await Promise.all(ids.map(id => manager.claim(id)))) as Lease[];
};
const mark = ({ operation }: Lease): Write => [MARK, [operation.tenantId, operation.id]];
const end = { state: 'succeeded', result: undefined, error: undefined } as const;
const transactions = async (leases: readonly Lease[]): Promise<number> => {
  const text = 'SELECT DISTINCT xmin::text FROM trivet.operation WHERE id = ANY ($1)';
  return (await house.testDatabase.query(text, [leases.map(({ operation }) => operation.id)])).length;
};
const marks = async (leases: readonly Lease[]) =>
  house.testDatabase.query<{ tenant_id: string; id: string; seen: number }>(
    'SELECT * FROM trivet.test_mark WHERE id = ANY ($1)',
    [leases.map(({ operation }) => operation.id)],
  );
const writer = (doorbell = new RememberingDoorbell()) =>
  new FencedWrites(house.database, doorbell, manager.workerId, 1_000);

describe.each([
  {
    what: 'ends',
    write: (fenced: FencedWrites, { operation }: Lease, writes: Write[]) =>
      fenced.finish({ operation, writes, ...end }),
  },
  {
    what: 'points',
    write: (fenced: FencedWrites, { operation }: Lease, writes: Write[]) =>
      fenced.point({ operation, writes, step: 'only' }),
  },
])('$what of several tenants', ({ write }) => {
  it('are one transaction, in which each handler writes inside its tenant and sees no other', async () => {
    const leases = await leased(2);
    const fenced = writer();
    await Promise.all(leases.map(lease => write(fenced, lease, [mark(lease)])));
    expect(await transactions(leases)).toBe(1);
    const rows = await marks(leases);
    expect(rows.map(({ id, tenant_id }) => `${id} ${tenant_id}`).sort()).toEqual(
      leases.map(({ operation }) => `${operation.id} ${operation.tenantId}`).sort(),
    );
    expect(rows.filter(({ seen }) => seen !== 1)).toEqual([]);
  });

  it('let no handler write into another tenant', async () => {
    const leases = await leased();
    const [thief, victim] = [leases[0]!, leases[1]!];
    const fenced = writer();
    const settled = await Promise.allSettled(
      leases.map(lease =>
        write(fenced, lease, [lease === thief ? [MARK, [victim.operation.tenantId, lease.operation.id]] : mark(lease)]),
      ),
    );
    expect(settled.map(({ status }) => status === 'fulfilled')).toEqual(leases.map(lease => lease !== thief));
    expect((await marks(leases)).map(({ id }) => id).sort()).toEqual(
      leases
        .slice(1)
        .map(({ operation }) => operation.id)
        .sort(),
    );
  });

  it('are refused for what is wrong with one of them alone', async () => {
    const leases = await leased();
    const [stale, broken] = [leases[1]!, leases[3]!];
    await house.testDatabase.query('UPDATE trivet.operation SET lease_until = now() WHERE id = $1', [
      stale.operation.id,
    ]);
    const fenced = writer();
    const settled = await Promise.allSettled(
      leases.map(lease =>
        write(fenced, lease, [
          lease === broken ? [BREAK, [lease.operation.tenantId, lease.operation.id]] : mark(lease),
        ]),
      ),
    );
    expect(settled.map(({ status }) => status === 'fulfilled')).toEqual(
      leases.map(lease => lease !== stale && lease !== broken),
    );
    expect(isFenceLost((settled[1] as PromiseRejectedResult).reason)).toBe(true);
    expect(isFenceLost((settled[3] as PromiseRejectedResult).reason)).toBe(false);
    expect(await marks([stale, broken])).toEqual([]);
    expect(await marks(leases)).toHaveLength(TENANTS - 2);
  });

  it('wait for no row that somebody holds of one of them', async () => {
    const leases = await leased();
    const held = leases[2]!;
    const holder = new pg.Client(house.testDatabase.superuserUrl);
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM trivet.operation WHERE id = $1 FOR UPDATE', [held.operation.id]);
    const fenced = writer();
    let ended = false;
    const written = leases.map(lease => write(fenced, lease, [mark(lease)]));
    void written[2]!.then(() => {
      ended = true;
    });
    await Promise.all(written.filter((_, n) => n !== 2));
    // Nor do those who come later, whatever lines are taken.
    const later = (await leased()).filter(({ operation }) => operation.tenantId !== held.operation.tenantId);
    await Promise.all(later.map(lease => write(fenced, lease, [mark(lease)])));
    expect(ended).toBe(false);
    await holder.query('COMMIT');
    await holder.end();
    await written[2];
  });
});

it('each end passes its place on inside its own line', async () => {
  const caps = 2;
  const under = [];
  const behind = new Map<string, string>();
  for (const one of tenants) {
    under.push(await house.accept(randomUUID(), { ...one, class: 'copy', cap: caps }));
    await house.accept(randomUUID(), { ...one, class: 'copy', cap: caps });
    behind.set(one.tenantId, await house.accept(randomUUID(), { ...one, class: 'copy', cap: caps }));
  }
  // One has nobody behind it, and one waits for a slot in another class of its tenant.
  await house.testDatabase.query('UPDATE trivet.operation SET finished_at = now(), state = $2 WHERE id = $1', [
    behind.get(tenants[0]!.tenantId),
    'cancelled',
  ]);
  const leases = (await Promise.all(under.map(id => manager.claim(id)))) as Lease[];
  const resource = leases[5]!.operation.resourceId;
  const beside = await house.accept(resource, { ...tenants[5], class: 'index', cap: caps });
  const doorbell = new RememberingDoorbell();
  const fenced = new FencedWrites(house.database, doorbell, manager.workerId, caps);
  await Promise.all(leases.map(({ operation }) => fenced.finish({ operation, writes: [], ...end })));
  expect(await transactions(leases)).toBe(1);
  const heirs = tenants.slice(1).map(({ tenantId }) => behind.get(tenantId)!);
  expect(doorbell.rings.map(({ operationId }) => operationId).sort()).toEqual([...heirs, beside].sort());
  expect(doorbell.rings.find(({ operationId }) => operationId === beside)?.class).toBe('index');
  const rows = await Promise.all(heirs.map(id => house.row(id)));
  expect(rows.map(({ place }) => place)).toEqual(heirs.map(() => 1));
});
