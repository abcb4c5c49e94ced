import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Operations } from '#operations/accepting/operations';
import { FencedWrites } from '#operations/leases/fenced-writes';
import type { Lease } from '#operations/leases/lease';
import { isFenceLost } from '#platform/database/database';
import { setSql, sql } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { EngineHouse, RememberingDoorbell, testWork } from '#test/engine/engine-house';

/** What comes at the same moment shares a transaction, and still nobody pays for another's lost lease or conflict. */
let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
  await house.testDatabase.query('CREATE TABLE trivet.test_mark (tenant_id uuid, id uuid, name text UNIQUE)');
  await house.testDatabase.query('GRANT ALL ON trivet.test_mark TO trivet_app');
});
afterAll(() => house?.close());

const MARK = setSql(
  'test_mark',
  'INSERT INTO trivet.test_mark (tenant_id, id) SELECT $1, id FROM unnest($2::uuid[]) AS id',
);
const CLAIM_NAMES = sql(
  'test_claim_names',
  `INSERT INTO trivet.test_mark (tenant_id, id, name)
   SELECT $1, id, name FROM json_to_recordset($4::json) AS new (id uuid, name text) ORDER BY name
   ON CONFLICT (name) DO NOTHING RETURNING id`,
);

const WORKER = randomUUID();

const leased = async (count: number): Promise<Lease[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await house.accept(randomUUID()));
  const { manager } = house.manager(60_000, WORKER);
  return (await Promise.all(ids.map(id => manager.claim(id)))) as Lease[];
};
const lost = ({ operation }: Lease) =>
  house.testDatabase.query('UPDATE trivet.operation SET lease_until = now() WHERE id = $1', [operation.id]);
/** How many transactions wrote these rows last. */
const transactions = async (ids: readonly string[]): Promise<number> => {
  const text = 'SELECT DISTINCT xmin::text FROM trivet.operation WHERE id = ANY ($1)';
  return (await house.testDatabase.query(text, [ids])).length;
};
const marked = async (leases: readonly Lease[]) => {
  const rows = await house.testDatabase.query<{ id: string }>('SELECT id FROM trivet.test_mark WHERE id = ANY ($1)', [
    leases.map(({ operation }) => operation.id),
  ]);
  return rows.map(({ id }) => id).sort();
};
const idsOf = (leases: readonly Lease[]) => leases.map(({ operation }) => operation.id).sort();
const fencedWrites = () => new FencedWrites(house.database, new RememberingDoorbell(), WORKER, 1_000);
const writesOf = ({ operation }: Lease) => ({
  operation,
  writes: [[MARK, [operation.tenantId, operation.id]]] as const,
});
const end = { state: 'succeeded', result: undefined, error: undefined } as const;

describe('claims of one moment', () => {
  it('are one transaction, and one lease each', async () => {
    const leases = await leased(12);
    expect(leases.every(lease => lease !== undefined)).toBe(true);
    expect(new Set(leases.map(({ operation }) => operation.place)).size).toBe(12);
    expect(await transactions(idsOf(leases))).toBe(1);
  });

  it('of one operation give one lease', async () => {
    const id = await house.accept(randomUUID());
    const { manager } = house.manager(60_000);
    const leases = await Promise.all([manager.claim(id), manager.claim(id), manager.claim(id)]);
    expect(leases.filter(lease => lease !== undefined)).toHaveLength(1);
    expect(manager.size).toBe(1);
  });

  it('that meet at a slot go to the first in line, and leave the others alone', async () => {
    const shared = randomUUID();
    const rivals: string[] = [];
    for (let n = 0; n < 3; n++) {
      const own = randomUUID();
      const slots = [
        { resource: own, slot: 'lifecycle', own: true },
        { resource: shared, slot: 'policy', own: false },
      ];
      rivals.push(await house.placed(await house.accept(own, { slots })));
    }
    const beside = await house.accept(randomUUID());
    const { manager } = house.manager(60_000);
    const claims = await Promise.all([beside, ...rivals].reverse().map(id => manager.claim(id)));
    const [first, ...others] = claims.reverse().slice(1);
    expect(claims[0]).toBeDefined();
    expect(first?.operation.id).toBe(rivals[0]);
    expect(others).toEqual([undefined, undefined]);
    const held = 'SELECT FROM trivet.operation_slot WHERE resource_id = $1 AND held';
    expect(await house.testDatabase.query(held, [shared])).toHaveLength(1);
  });
});

describe.each([
  {
    what: 'points',
    write: (fenced: FencedWrites, lease: Lease) => fenced.point({ ...writesOf(lease), step: 'only' }),
  },
  { what: 'ends', write: (fenced: FencedWrites, lease: Lease) => fenced.finish({ ...writesOf(lease), ...end }) },
])('$what of one moment', ({ write }) => {
  it('are one transaction, with what their handlers write', async () => {
    const leases = await leased(10);
    const fenced = fencedWrites();
    await Promise.all(leases.map(lease => write(fenced, lease)));
    expect(await transactions(idsOf(leases))).toBe(1);
    expect(await marked(leases)).toEqual(idsOf(leases));
  });

  it('are refused for a lost lease alone, and nothing of it is written', async () => {
    const leases = await leased(6);
    const stale = leases[2]!;
    await lost(stale);
    const fenced = fencedWrites();
    const settled = await Promise.allSettled(leases.map(lease => write(fenced, lease)));
    expect(settled.map(({ status }) => status === 'fulfilled')).toEqual(leases.map(lease => lease !== stale));
    expect(isFenceLost((settled[2] as PromiseRejectedResult).reason)).toBe(true);
    expect(await marked(leases)).toEqual(idsOf(leases.filter(lease => lease !== stale)));
    expect((await house.row(stale.operation.id)).state).toBe('running');
  });

  it('tell each whether it is asked to stop', async () => {
    const leases = await leased(3);
    await house.testDatabase.query('UPDATE trivet.operation SET cancel_requested_at = now() WHERE id = $1', [
      leases[1]!.operation.id,
    ]);
    const fenced = fencedWrites();
    const told = await Promise.all(leases.map(lease => write(fenced, lease)));
    expect(told.map(answer => answer === true || answer === 'cancelled')).toEqual([false, true, false]);
  });
});

describe('new resources of one moment', () => {
  it('are claimed and accepted in one transaction, each name once', async () => {
    const operations = new Operations(house.database, new RememberingDoorbell(), 1_000);
    const submit = (name: string) => {
      const resourceId = uuidv7();
      const caller = { tenantId: house.tenantId, backendId: house.backendId, deadline: Date.now() };
      const asked = { resourceId, resourceName: name, request: {} };
      return operations.submitNew(caller, testWork, asked, {
        claim: CLAIM_NAMES,
        row: () => ({ id: resourceId, name }),
      });
    };
    const names = ['a', 'b', 'c', 'b', 'd', 'a', 'e'];
    const submitted = await Promise.all(names.map(submit));
    const accepted = submitted.flatMap(one => (one ? [one.operation!.id] : []));
    expect(accepted).toHaveLength(5);
    expect(names.filter((_, n) => submitted[n]).sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await transactions(accepted)).toBe(1);
    const rows = await house.testDatabase.query('SELECT FROM trivet.operation_slot WHERE operation_id = ANY ($1)', [
      accepted,
    ]);
    expect(rows).toHaveLength(5);
    await operations.close();
  });
});
