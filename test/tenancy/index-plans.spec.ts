import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database, type Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { promisedOf } from '#storage/block/pools/pool-capacity';
import { type AuditFilter, AuditReader } from '#tenancy/audit-log/audit-reader';
import { createDatabase, type TestDatabase } from '#test/support/database';

/** What is asked of tables that grow for years reads an index, and of that as much as the answer has. */
const ENTRIES = 20_000;
const VOLUMES = 2_000;
/** Pages of 8 KiB: an answer's, and the ways to them. */
const FEW = 400;

let testDatabase: TestDatabase;
let database: Database;
const [tenant, other, backend] = [randomUUID(), randomUUID(), randomUUID()];
beforeAll(async () => {
  testDatabase = await createDatabase();
  database = await Database.connect({ appUrl: testDatabase.appUrl, applicationName: 'trivet:test' });
  for (const [id, name] of [
    [tenant, 'own'],
    [other, 'other'],
  ])
    await testDatabase.query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [id, name]);
  // One of an action that nobody has done since.
  await testDatabase.query(
    `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_name)
     SELECT CASE n % 2 WHEN 0 THEN $1::uuid ELSE $2::uuid END, 'any', 'user', 'ann',
            CASE WHEN n = 2 THEN 'user.delete' ELSE 'volume.' || (ARRAY['create', 'change', 'delete'])[n % 3 + 1] END, 'thing', 'n-' || n
       FROM generate_series(1, $3::int) AS n`,
    [tenant, other, ENTRIES],
  );
  await testDatabase.query(
    "INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, 'b', 'reflink', '{}')",
    [tenant, backend],
  );
  await testDatabase.query(
    `INSERT INTO trivet.volume (tenant_id, id, backend_id, name, state, desired, fingerprint, pool, folder, size_bytes, thick,
       destroy_on_delete, description, config)
     SELECT $1, gen_random_uuid(), $2, 'v-' || n, 'ready', '{}', '', 'fast', '', 1024, false, true, '', '{}'
       FROM generate_series(1, $3::int) AS n`,
    [tenant, backend, VOLUMES],
  );
  await testDatabase.query('VACUUM ANALYZE');
}, 120_000);
afterAll(async () => {
  await database?.close();
  await testDatabase?.drop();
});

interface Plan {
  'Node Type': string;
  'Index Name'?: string;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Plan[];
}
const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];
const explained = ({ text }: Statement): Statement => sql('', `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`);
const planOf = (rows: readonly unknown[]): Plan =>
  (rows[0] as { 'QUERY PLAN': { Plan: Plan }[] })['QUERY PLAN'][0]!.Plan;

/** Explains what a reader sends instead of running it. */
const explaining = {
  call: (statement: Statement, params: readonly unknown[]) => database.call(explained(statement), params),
  withTenant: (id: string, work: (tx: Tx) => Promise<unknown>) =>
    database.withTenant(id, tx =>
      work({
        query: (statement: Statement, params: readonly unknown[]) => tx.query(explained(statement), params),
      } as Tx),
    ),
} as unknown as Database;

describe('the audit log by action', () => {
  const scopes = [
    { whose: 'a tenant', scope: { tenantId: tenant } },
    { whose: 'all', scope: {} },
  ];
  const cases = scopes.flatMap(one =>
    ['user.', 'user.delete', 'volume.', 'nothing'].map(action => ({ ...one, action })),
  );
  it.each(cases)('of $whose, $action, reads what it answers', async ({ scope, action }) => {
    const page = await new AuditReader(explaining).list(scope, { action }, { limit: 50 });
    const plan = planOf(page.rows);
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(FEW);
  });

  it.each(scopes)('of $whose is the log without the others', async ({ scope }) => {
    const reader = new AuditReader(database);
    const all = (await reader.list(scope, {}, { limit: ENTRIES + 10 })).rows;
    for (const action of ['volume.c', 'volume.change', 'user.', 'nothing', '']) {
      const filter: AuditFilter = { action };
      const first = await reader.list(scope, filter, { limit: 70 });
      const second = first.next ? await reader.list(scope, filter, { limit: 70, after: first.next }) : { rows: [] };
      const wanted = all.filter(row => row.action.startsWith(action)).slice(0, 140);
      expect([...first.rows, ...second.rows]).toEqual(wanted);
    }
  });
});

it('what a pool has promised is read from its tally, and what is due to leave the bin by an index', async () => {
  const text = `SELECT ${promisedOf('$1', '$2', '$3')}::text AS bytes`;
  const rows = await database.withTenant(tenant, tx => tx.query(explained(sql('', text)), [tenant, backend, 'fast']));
  const plan = planOf(rows);
  expect(nodes(plan).flatMap(node => node['Index Name'] ?? [])).toContain('volume_binned');
  expect(nodes(plan).flatMap(node => node['Index Name'] ?? [])).not.toContain('volume_promised');
  expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(10);
});
