import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEngineFigures } from '#operations/workers/figures';
import { Database } from '#platform/database/database';
import { type Statement, sql, sqlFile } from '#platform/database/sql';
import { EngineHouse } from '#test/engine/engine-house';
import { wakeText } from '#test/engine/wake-text';

/** What runs at each end, or whenever somebody looks, must not read a whole backlog or the whole history. */
const BACKLOG = 5_000;
const HISTORY = 20_000;
const MANY = 500;
const LOOK = sqlFile('operations', 'look');

let house: EngineHouse;
beforeAll(async () => {
  house = await EngineHouse.create();
  const { tenantId, backendId, testDatabase } = house;
  const fill = `INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id,
                                              resource_name, request, state, finished_at)
                SELECT $1, gen_random_uuid(), 'test.work', 'fast', $2, 'thing', gen_random_uuid(), 'thing', '{}', $3,
                       CASE WHEN $3 = 'succeeded' THEN now() END
                  FROM generate_series(1, $4::int)`;
  await testDatabase.query(fill, [tenantId, backendId, 'succeeded', HISTORY]);
  await testDatabase.query(fill, [tenantId, backendId, 'pending', BACKLOG]);
  await testDatabase.query(
    `INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, seq, priority)
     SELECT tenant_id, id, resource_id, 'lifecycle', true, seq, 0 FROM trivet.operation WHERE state = 'pending'`,
  );
  await testDatabase.query('VACUUM ANALYZE');
});
afterAll(() => house?.close());

interface Plan {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];
/** The most rows that any part of the plan has looked at. */
const looked = (plan: Plan): number =>
  Math.max(
    ...nodes(plan).map(node => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']),
  );
const explained = (name: string, text: string): Statement =>
  sql(`explain_${name}`, `EXPLAIN (ANALYZE, FORMAT JSON) ${text.replace(/^--.*$/gm, '')}`);
const planOf = (rows: unknown[]) => (rows[0] as { 'QUERY PLAN': { Plan: Plan }[] })['QUERY PLAN'][0]!.Plan;

describe('with a backlog and a history', () => {
  it.each([
    {
      what: 'an end',
      name: 'pass_on',
      textOf: () => wakeText(house.testDatabase),
      paramsOf: (resource: string) => [[house.tenantId], [house.backendId], ['fast'], [1], [resource], 32],
    },
    {
      what: 'a second look',
      name: 'look',
      textOf: () => LOOK.text,
      paramsOf: (resource: string) => [house.tenantId, house.backendId, 'fast', [resource], 32],
    },
  ])('$what finds who is next without reading all who wait', async ({ name, textOf, paramsOf }) => {
    const text = await textOf();
    const [waiting] = await house.testDatabase.query<{ resource: string }>(
      'SELECT resource_id AS resource FROM trivet.operation_slot LIMIT 1',
    );
    const params = paramsOf(waiting!.resource);
    const rows = await house.database.withTenant(house.tenantId, tx => tx.query(explained(name, text), params));
    expect(looked(planOf(rows))).toBeLessThan(MANY);
  });

  it('the figures of a scrape do not read what has ended', async () => {
    let text = '';
    const engine = async (statement: Statement) => {
      text = statement.text;
      return [{ circuits: {} }];
    };
    await readEngineFigures({ engine } as unknown as Database);
    const rows = await house.database.engine(explained('figures', text));
    expect(looked(planOf(rows))).toBeLessThan(BACKLOG + MANY);
  });

  it('what waits for a backend is counted without what has ended', async () => {
    const { tenantId, backendId, testDatabase } = house;
    await testDatabase.query(
      "INSERT INTO trivet.backend_circuit (tenant_id, backend_id, open_until) VALUES ($1, $2, now() + interval '1 hour')",
      [tenantId, backendId],
    );
    const [found] = await testDatabase.query<{ prosrc: string }>(
      "SELECT prosrc FROM pg_proc WHERE oid = 'trivet.circuits'::regproc",
    );
    const text = found!.prosrc.replaceAll('p_tenant', 'NULL::uuid');
    const plan = planOf(await testDatabase.query(explained('circuits', text).text));
    expect(looked(plan)).toBeGreaterThanOrEqual(BACKLOG);
    expect(looked(plan)).toBeLessThan(BACKLOG + MANY);
  });
});
