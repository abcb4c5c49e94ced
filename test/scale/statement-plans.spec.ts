import 'reflect-metadata';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { PLANNING } from '#platform/database/database';
import { GROWING, ScaleFill } from '#test/bench/scale/fill';
import { ALLOWED } from '#test/scale/allowed-scans';
import { loadLibraries, type ProductStatement } from '#test/scale/product-statements';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { OwnPostgres } from '#test/support/postgres-server';
import { nodesOf, type PlanNode } from '#test/support/statement-plans';

const statements = vi.hoisted(() => new Map<string, { name: string; text: string }>());
vi.mock('#platform/database/sql', async original => {
  const real = await original<typeof import('#platform/database/sql')>();
  const noted = <Made extends ProductStatement>(made: Made): Made => {
    if (made.name) statements.set(made.name, made);
    return made;
  };
  return {
    sql: (...given: Parameters<typeof real.sql>) => noted(real.sql(...given)),
    setSql: (...given: Parameters<typeof real.setSql>) => noted(real.setSql(...given)),
    sqlFile: (...given: Parameters<typeof real.sqlFile>) => noted(real.sqlFile(...given)),
  };
});

const VOLUMES = 20_000;

let server: OwnPostgres;
let database: TestDatabase;
let app: pg.Client;
let engine: pg.Client;
let fill: ScaleFill;
const indexes = new Map<string, { table: string; partial: boolean; columns: string[] }>();
beforeAll(async () => {
  await loadLibraries();
  server = await OwnPostgres.start();
  database = await createDatabase(server.urls);
  fill = await ScaleFill.begin(database.superuserUrl, () => {});
  await fill.grow(VOLUMES);
  app = new pg.Client({ connectionString: database.appUrl, options: PLANNING });
  engine = new pg.Client({ connectionString: database.engineUrl, options: PLANNING });
  await Promise.all([app.connect(), engine.connect()]);
  const rows = await database.query<{ name: string; table: string; partial: boolean; columns: string[] }>(
    `SELECT i.indexrelid::regclass::text AS name, i.indrelid::regclass::text AS table, i.indpred IS NOT NULL AS partial,
            (SELECT array_agg(a.attname::text) FROM pg_attribute a WHERE a.attrelid = i.indexrelid) AS columns
       FROM pg_index i WHERE i.indrelid::regclass::text LIKE 'trivet.%'`,
  );
  for (const { name, table, ...rest } of rows)
    indexes.set(name.replace('trivet.', ''), { table: table.replace('trivet.', ''), ...rest });
}, 180_000);
afterAll(async () => {
  await app?.end();
  await engine?.end();
  await fill?.close();
  await database?.drop();
  await server?.close();
}, 60_000);

/** As it is planned for any values: the product's connections have no other plans. */
async function planOf({ text }: ProductStatement): Promise<PlanNode> {
  for (const client of [engine, app]) {
    try {
      await client.query(`PREPARE one AS ${text}`);
    } catch (error) {
      // Not a table of that role.
      if (client === engine && (error as { code?: string }).code === '42501') continue;
      throw error;
    }
    try {
      const { rows } = await client.query<{ n: number }>(
        "SELECT cardinality(parameter_types) AS n FROM pg_prepared_statements WHERE name = 'one'",
      );
      const { n } = rows[0]!;
      const given = n > 0 ? `(${Array.from({ length: n }, () => 'NULL').join(', ')})` : '';
      const explained = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE one${given}`);
      return explained.rows[0]['QUERY PLAN'][0].Plan;
    } catch (error) {
      if (client !== engine || (error as { code?: string }).code !== '42501') throw error;
    } finally {
      await client.query('DEALLOCATE one');
    }
  }
  throw new Error('no role may send it');
}

/** Partial, and of nearly all rows all the same: what lives, what is ready, what has ended. */
const NEARLY_ALL = /_(live|named|audit|in_pool|finished|measured|applied)$/;

/**
 * What reads a table from end to end, or all that a tenant has of it: by itself, or by an index that nothing but the tenant is
 * looked up in. Other partial indexes than NEARLY_ALL hold what is under way or waits to be cleared; a LIMIT right above
 * ends it.
 */
function wholeScans(node: PlanNode, limited = false): string[] {
  const type = node['Node Type'];
  const index = node['Index Name'] ? indexes.get(node['Index Name']) : undefined;
  const table = node['Relation Name'] ?? index?.table;
  const found: string[] = [];
  if (table !== undefined && GROWING.has(table)) {
    const condition = node['Index Cond'] ?? '';
    // Of other tables columns stand behind an alias.
    const onlyTenant = !index?.columns.some(
      column => column !== 'tenant_id' && new RegExp(`(?<![.\\w])${column}\\b`).test(condition),
    );
    if (type === 'Seq Scan') found.push(`${table} from end to end`);
    else if (index && (!index.partial || NEARLY_ALL.test(node['Index Name']!)) && !limited && onlyTenant)
      found.push(`${table} by ${node['Index Name']}${condition === '' ? ' from end to end' : ', all of a tenant'}`);
  }
  const passesOn = type === 'Limit' || (limited && /^(Nested Loop|Index|LockRows|Subquery Scan|Result)/.test(type));
  return found.concat(...(node.Plans ?? []).map(child => wholeScans(child, passesOn)));
}

/** Parts of the statement that accepts, which have only some of its parameters; test/engine/plans-when-empty.spec.ts has the whole. */
const PARTS_OF_ACCEPT = new Set(['bucket_claim', 'volume_claim', 'snapshot_claim']);

const refused = async (which: Iterable<ProductStatement>) => {
  const found: string[] = [];
  for (const statement of which) {
    if (PARTS_OF_ACCEPT.has(statement.name)) continue;
    const plan = await planOf(statement).catch(error => {
      throw new Error(`${statement.name}: ${error.message}`, { cause: error });
    });
    const scans = wholeScans(plan);
    for (const scan of new Set(scans)) found.push(`${statement.name}: ${scan}`);
  }
  return found.sort();
};

describe('every statement of the product', () => {
  it('is known', () => {
    expect(statements.size).toBeGreaterThan(250);
    expect([...statements.keys()]).toEqual(
      expect.arrayContaining(['operations.due', 'replay_of_pool', 'release_find']),
    );
  });

  it('reads no growing table from end to end, and not all that a tenant has', async () => {
    const found = await refused(statements.values());
    expect(found.filter(one => !(one in ALLOWED))).toEqual([]);
    // What is not needed any more would hide what comes.
    expect(Object.keys(ALLOWED).filter(one => !found.includes(one))).toEqual([]);
  }, 120_000);

  it.each([
    ['block_audit_images', 'volume_in_pool'],
    ['block_audit_snapshots', 'snapshot_in_pool'],
    ['hidden_find', 'snapshot_hidden_order'],
  ])('%s reads a portion in the order of %s', async (name, index) => {
    const nodes = nodesOf(await planOf(statements.get(name)!));
    expect(nodes.map(node => node['Node Type'])).not.toContain('Sort');
    expect(nodes.map(node => node['Index Name'])).toContain(index);
  });

  it('cluster_view counts the sessions of a cluster by an index of their own', async () => {
    await fill.query(`INSERT INTO trivet.snapshot_session (tenant_id, id, name, state, cluster_id, ttl_ms, expires_at)
      SELECT t.id, gen_random_uuid(), 's' || n, 'ready', scale.id(99, n % 10), 1, now() + n * interval '1 s'
        FROM (SELECT id FROM trivet.tenant ORDER BY id LIMIT 10) AS t, generate_series(1, 1000) AS n`);
    await fill.query('ANALYZE trivet.snapshot_session');
    const nodes = nodesOf(await planOf(statements.get('cluster_view')!));
    expect(nodes.filter(node => node['Node Type'] === 'Seq Scan')).toEqual([]);
    expect(nodes.filter(node => node['Index Name']?.startsWith('snapshot_session'))).toMatchObject([
      { 'Index Name': 'snapshot_session_by_cluster', 'Index Cond': expect.stringContaining('cluster_id') },
    ]);
  });

  it('meter_elsewhere reads tallies, and no row of a bucket', async () => {
    const tables = nodesOf(await planOf(statements.get('meter_elsewhere')!)).map(node => node['Relation Name']);
    expect(tables).toContain('tally');
    expect(tables).not.toContain('bucket');
  });

  it('would be refused without its index', async () => {
    await fill.query('DROP INDEX trivet.volume_applied');
    expect(await refused([statements.get('replay_of_pool')!])).not.toEqual([]);
  });
});
