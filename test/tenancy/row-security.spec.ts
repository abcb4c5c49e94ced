import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidv7 } from '#platform/uuid';
import { createDatabase, type TestDatabase } from '#test/support/database';
import { fillTenant } from '#test/tenancy/fill-tenant';

/** What the database itself refuses, whatever a statement of ours forgets (invariants T1, T2; promise P7). */
let database: TestDatabase;
let app: pg.Client;
let engine: pg.Client;
const A = uuidv7();
const B = uuidv7();
const ENGINE_SEES = [
  'appliance',
  'backend_circuit',
  'cluster_fence',
  'fair_cap',
  'operation',
  'operation_event',
  'operation_slot',
  'periodic_task',
  'pool_home',
  'queue',
  'storage_host',
  'worker',
];
/** Of these it reads what lists show, of all tenants, and writes nothing. */
const ENGINE_SHOWS = [
  'access',
  'backend',
  'bucket',
  'bucket_grant',
  'change_step',
  'host',
  'protection_run',
  'protection_template',
  'publication',
  'snapshot',
  'volume',
  'volume_protection',
];
/** Of no tenant, and of no role but the owner: functions that run as it, or commands, say what may be done with them. */
const BY_FUNCTION_ONLY = ['appliance_backup', 'database_restore', 'login_throttle', 'passkey_challenge', 'target_id'];
/** Of no tenant too: of the processes. Workers write them as the engine, gateways go through functions. */
const OF_THE_ENGINE = ['cluster_fence', 'fair_cap', 'periodic_task', 'queue', 'storage_host', 'worker'];
let tenantTables: string[];
/** Ids that belong to B and that A has guessed. */
const ids: Record<string, string> = {};

const connect = async (url: string): Promise<pg.Client> => {
  const client = new pg.Client(url);
  await client.connect();
  return client;
};
const names = (result: pg.QueryResult): string[] => result.rows.map(row => Object.values(row)[0] as string);

beforeAll(async () => {
  database = await createDatabase();
  const rows = await database.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`,
  );
  tenantTables = rows.map(row => row.name);
  await fillTenant(database, A, 'tenant-a');
  Object.assign(ids, await fillTenant(database, B, 'tenant-b'));
  app = await connect(database.appUrl);
  engine = await connect(database.engineUrl);
});
afterAll(async () => {
  await app?.end();
  await engine?.end();
  await database?.drop();
});

/** Runs in a transaction of tenant A that is rolled back. */
async function asA<T>(work: () => Promise<T>): Promise<T> {
  await app.query(`BEGIN; SET LOCAL trivet.tenant = '${A}'`);
  try {
    return await work();
  } finally {
    await app.query('ROLLBACK');
  }
}

describe('the catalogue', () => {
  it('has filled every table of a tenant, so that the tests below mean something', async () => {
    for (const table of tenantTables) {
      const rows = await database.query(`SELECT DISTINCT tenant_id FROM trivet.${table} WHERE tenant_id IN ($1, $2)`, [
        A,
        B,
      ]);
      expect(rows, `${table}: give it rows in fillTenant()`).toHaveLength(2);
    }
    expect(tenantTables.length).toBeGreaterThanOrEqual(10);
  });

  it('begins every unique index of a tenant table with tenant_id', async () => {
    const rows = await database.query(
      `SELECT i.indexrelid::regclass::text AS index FROM pg_index i
        WHERE i.indisunique AND i.indrelid = ANY ($1::regclass[])
          AND (SELECT attname FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0]) IS DISTINCT FROM 'tenant_id'`,
      [tenantTables.map(table => `trivet.${table}`)],
    );
    expect(rows).toEqual([]);
  });

  it('begins every foreign key of a tenant table with tenant_id, on both sides', async () => {
    const rows = await database.query(
      `SELECT c.conname FROM pg_constraint c
        WHERE c.contype = 'f' AND c.conrelid = ANY ($1::regclass[])
          AND ((SELECT attname FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = c.conkey[1]) <> 'tenant_id'
            OR (SELECT attname FROM pg_attribute WHERE attrelid = c.confrelid AND attnum = c.confkey[1])
               <> CASE c.confrelid WHEN 'trivet.tenant'::regclass THEN 'id' ELSE 'tenant_id' END)`,
      [tenantTables.map(table => `trivet.${table}`)],
    );
    expect(rows).toEqual([]);
  });

  it('forces row security with a policy for the application role on every table of a tenant, and on tenant', async () => {
    const open = await database.query(
      `SELECT c.relname FROM pg_class c
        WHERE c.oid = ANY ($1::regclass[])
          AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND EXISTS (
                SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND 'trivet_app'::regrole = ANY (p.polroles)
                   AND pg_get_expr(p.polqual, p.polrelid) LIKE '%current_tenant()%'
                   AND (c.relname = 'tenant' OR pg_get_expr(p.polwithcheck, p.polrelid) LIKE '%current_tenant()%')))`,
      [[...tenantTables, 'tenant'].map(table => `trivet.${table}`)],
    );
    expect(open).toEqual([]);
    const forAll = await database.query('SELECT polname FROM pg_policy WHERE 0 = ANY (polroles)');
    expect(forAll, 'a policy for PUBLIC').toEqual([]);
  });

  it('knows every table of the schema: of a tenant, or one of those that belong to nobody', async () => {
    const rows = await database.query<{ relname: string }>(
      `SELECT relname FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')`,
    );
    const others = rows.map(row => row.relname).filter(name => !tenantTables.includes(name));
    expect(others.sort()).toEqual(['appliance', 'migration', 'tenant', ...BY_FUNCTION_ONLY, ...OF_THE_ENGINE].sort());
  });

  it('fixes the search path of what runs with more rights, and lets nobody run anything by default', async () => {
    const loose = await database.query(
      `SELECT proname FROM pg_proc
        WHERE pronamespace = 'trivet'::regnamespace AND prosecdef
          AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']`,
    );
    expect(loose).toEqual([]);
    const byAnybody = await database.query(
      `SELECT proname FROM pg_proc p
        WHERE pronamespace = 'trivet'::regnamespace
          AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0))`,
    );
    expect(byAnybody).toEqual([]);
    expect(await database.query("SELECT has_schema_privilege('public', 'trivet', 'USAGE') AS may")).toEqual([
      { may: false },
    ]);
  });

  it('gives the two roles no way around: no superuser, no BYPASSRLS, no ownership, no membership', async () => {
    const roles = await database.query(
      `SELECT rolname, rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication AS strong,
              EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid)
              OR EXISTS (SELECT FROM pg_proc p WHERE p.proowner = r.oid)
              OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid) AS more
         FROM pg_roles r WHERE rolname IN ('trivet_app', 'trivet_engine') ORDER BY 1`,
    );
    expect(roles).toEqual([
      { rolname: 'trivet_app', strong: false, more: false },
      { rolname: 'trivet_engine', strong: false, more: false },
    ]);
    for (const client of [app, engine]) {
      await expect(client.query('SET ROLE trivet_owner')).rejects.toMatchObject({ code: '42501' });
      await expect(client.query('ALTER TABLE trivet.bucket DISABLE ROW LEVEL SECURITY')).rejects.toMatchObject({
        code: '42501',
      });
    }
  });
});

describe('the application role', () => {
  it('sees nothing and writes nothing without a tenant, also after a tenant that was set for one transaction', async () => {
    const fresh = await connect(database.appUrl);
    try {
      const check = async (): Promise<void> => {
        for (const table of [...tenantTables, 'tenant']) {
          expect((await fresh.query(`SELECT FROM trivet.${table}`)).rowCount, table).toBe(0);
        }
        await expect(
          fresh.query('INSERT INTO trivet.backend_circuit (tenant_id, backend_id) SELECT $1, $2', [B, ids.backend]),
        ).rejects.toMatchObject({ code: '42501' });
        expect((await fresh.query("UPDATE trivet.bucket SET name = 'x'")).rowCount).toBe(0);
        expect((await fresh.query('DELETE FROM trivet.bucket_grant')).rowCount).toBe(0);
      };
      expect((await fresh.query("SELECT current_setting('trivet.tenant', true) AS v")).rows).toEqual([{ v: null }]);
      await check();
      await fresh.query(`BEGIN; SET LOCAL trivet.tenant = '${A}'`);
      expect((await fresh.query('SELECT FROM trivet.bucket')).rowCount).toBe(1);
      await fresh.query('COMMIT');
      expect((await fresh.query("SELECT current_setting('trivet.tenant', true) AS v")).rows).toEqual([{ v: '' }]);
      await check();
    } finally {
      await fresh.end();
    }
  });

  it('sees exactly its own rows in every table', async () => {
    await asA(async () => {
      for (const table of tenantTables) {
        const rows = names(await app.query(`SELECT tenant_id FROM trivet.${table}`));
        expect([...new Set(rows)], table).toEqual([A]);
      }
      expect(names(await app.query('SELECT id FROM trivet.tenant'))).toEqual([A]);
    });
  });

  it.each(['backend', 'endpoint', 'bucket', 'access', 'operation'])(
    'neither reads, changes nor deletes a row of another tenant by its id: %s',
    async table => {
      await asA(async () => {
        const where = `WHERE tenant_id = '${B}' AND id = '${ids[table]}'`;
        expect((await app.query(`SELECT FROM trivet.${table} ${where}`)).rowCount).toBe(0);
        expect((await app.query(`SELECT FROM trivet.${table} ${where} FOR UPDATE`)).rowCount).toBe(0);
        expect((await app.query(`UPDATE trivet.${table} SET created_at = now() ${where}`)).rowCount).toBe(0);
        expect((await app.query(`DELETE FROM trivet.${table} ${where}`)).rowCount).toBe(0);
      });
    },
  );

  it('writes no row for another tenant, by no statement', async () => {
    const attempts = [
      `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ('${B}', 'x', '${randomUUID()}', 'x', 'x')`,
      `INSERT INTO trivet.operation_event (tenant_id, operation_id, type) VALUES ('${B}', '${ids.operation}', 'x')`,
      `UPDATE trivet.bucket SET tenant_id = '${B}'`,
      `UPDATE trivet.secret SET tenant_id = '${B}', owner_id = '${randomUUID()}'`,
      `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
       VALUES ('${B}', '${ids.bucket}', '${ids.backend}', 'photos', 'created', 'ready', '{}', 'x')
       ON CONFLICT (tenant_id, id) DO UPDATE SET state = 'gone'`,
    ];
    for (const attempt of attempts) {
      await asA(async () => {
        await expect(app.query(attempt), attempt).rejects.toMatchObject({ code: '42501' });
      });
    }
  });

  it("references nothing of another tenant, and is told no more of B's rows than of none", async () => {
    const grant = (bucket: string) =>
      asA(async () => {
        const own = names(await app.query('SELECT id FROM trivet.access'))[0];
        return app
          .query("INSERT INTO trivet.bucket_grant VALUES ($1, $2, $3, 'read_write', 'wanted')", [A, own, bucket])
          .catch((error: pg.DatabaseError) => `${error.code} ${error.constraint}`);
      });
    expect(await grant(ids.bucket!)).toBe('23503 bucket_grant_tenant_id_bucket_id_fkey');
    expect(await grant(randomUUID())).toBe('23503 bucket_grant_tenant_id_bucket_id_fkey');
    const sameKey = asA(() =>
      app.query(
        `INSERT INTO trivet.bucket (tenant_id, id, backend_id, name, origin, state, desired, fingerprint)
         SELECT $1, $2, id, 'other', 'created', 'ready', '{}', 'x' FROM trivet.backend`,
        [A, ids.bucket],
      ),
    );
    expect((await sameKey).rowCount).toBe(1);
  });

  it('finds who calls by the whole token and by nothing less', async () => {
    const find = async (hash: Buffer) =>
      (await app.query('SELECT tenant_id FROM trivet.find_admin_token($1)', [hash])).rows;
    expect(await find(Buffer.alloc(32))).toHaveLength(2);
    for (const hash of [Buffer.alloc(31), Buffer.alloc(32, 1), Buffer.alloc(0)]) expect(await find(hash)).toEqual([]);
  });

  it('gets nothing of another tenant from the functions that take a tenant, unless it names both', async () => {
    const { rows } = await app.query('SELECT * FROM trivet.find_buckets($1, $2, $3)', [A, ids.endpoint, ['photos']]);
    expect(rows).toEqual([]);
    expect((await app.query('SELECT * FROM trivet.read_outcomes($1, $2)', [A, [ids.operation]])).rows).toEqual([]);
    expect((await app.query('SELECT FROM trivet.operation')).rowCount).toBe(0);
  });

  it('cannot write the registry of tenants', async () => {
    await expect(
      app.query("INSERT INTO trivet.tenant (id, name) VALUES (gen_random_uuid(), 'c')"),
    ).rejects.toMatchObject({ code: '42501' });
    await expect(asA(() => app.query("UPDATE trivet.tenant SET state = 'active'"))).rejects.toMatchObject({
      code: '42501',
    });
  });
});

describe.each(['app', 'engine'])('the %s role', role => {
  it.each(BY_FUNCTION_ONLY)('reaches %s by no statement', async table => {
    const client = role === 'app' ? app : engine;
    for (const statement of [`SELECT FROM trivet.${table}`, `DELETE FROM trivet.${table}`, `TRUNCATE trivet.${table}`])
      await expect(client.query(statement), statement).rejects.toMatchObject({ code: '42501' });
  });
});

it.each(OF_THE_ENGINE)('the app role reaches %s by no statement', async table => {
  for (const statement of [`SELECT FROM trivet.${table}`, `DELETE FROM trivet.${table}`, `TRUNCATE trivet.${table}`])
    await expect(app.query(statement), statement).rejects.toMatchObject({ code: '42501' });
});

describe('the engine role', () => {
  it('sees operations of all tenants, what lists show of their resources, and nothing else', async () => {
    const readable = await database.query<{ relname: string }>(
      `SELECT relname FROM pg_class WHERE relnamespace = 'trivet'::regnamespace AND relkind IN ('r', 'p')
          AND has_any_column_privilege('trivet_engine', oid, 'SELECT, INSERT, UPDATE') ORDER BY 1`,
    );
    expect(readable.map(row => row.relname)).toEqual([...ENGINE_SEES, ...ENGINE_SHOWS].sort());
    expect((await engine.query('SELECT DISTINCT tenant_id FROM trivet.operation')).rowCount).toBe(2);
    // Who pauses a class of operations is asked for a role and a reason; a worker only obeys.
    await expect(engine.query('UPDATE trivet.queue SET paused = true')).rejects.toMatchObject({ code: '42501' });
    for (const table of tenantTables.filter(name => ![...ENGINE_SEES, ...ENGINE_SHOWS].includes(name)))
      await expect(engine.query(`SELECT FROM trivet.${table}`), table).rejects.toMatchObject({ code: '42501' });
    await expect(
      engine.query('SELECT * FROM trivet.find_buckets($1, $2, $3)', [A, A, ['photos']]),
    ).rejects.toMatchObject({
      code: '42501',
    });
  });
});

describe('what lists show of all tenants', () => {
  it.each(ENGINE_SHOWS)('the engine role reads of %s, by named columns, and writes nothing', async table => {
    const { rows } = await engine.query(`SELECT DISTINCT tenant_id FROM trivet.${table}`);
    expect(rows.length).toBeGreaterThanOrEqual(2);
    for (const statement of [
      `SELECT * FROM trivet.${table}`,
      `UPDATE trivet.${table} SET tenant_id = tenant_id`,
      `DELETE FROM trivet.${table}`,
      `INSERT INTO trivet.${table} (tenant_id) VALUES ('${A}')`,
    ])
      await expect(engine.query(statement), statement).rejects.toMatchObject({ code: '42501' });
  });

  it.each([
    ['backend', 'config'],
    ['volume', 'desired'],
    ['volume', 'config'],
    ['snapshot', 'config'],
    ['bucket', 'fingerprint'],
  ])('%s.%s is none of it', async (table, column) => {
    const statement = `SELECT ${column} FROM trivet.${table}`;
    await expect(engine.query(statement)).rejects.toMatchObject({ code: '42501' });
  });

  it('is of one tenant for the application role still', async () => {
    await asA(async () => {
      for (const table of ENGINE_SHOWS)
        expect(names(await app.query(`SELECT DISTINCT tenant_id FROM trivet.${table}`)), table).toEqual([A]);
    });
  });
});

describe('history', () => {
  const changes = ['operation_event', 'audit_entry'].flatMap(table => [
    `UPDATE trivet.${table} SET at = now()`,
    `DELETE FROM trivet.${table}`,
    `TRUNCATE trivet.${table}`,
    `SELECT FROM trivet.${table} FOR UPDATE`,
  ]);
  it.each(['app', 'engine'])('is written and never rewritten or removed by the %s role', async role => {
    const run = (statement: string) => (role === 'app' ? asA(() => app.query(statement)) : engine.query(statement));
    for (const statement of changes) await expect(run(statement), statement).rejects.toMatchObject({ code: '42501' });
  });

  it('of administrators is written in their own tenant only, and no statement gives it a number of its own', async () => {
    const insert = (tenant: string, more = '', value = '') =>
      asA(() =>
        app.query(
          `INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind${more})
           VALUES ('${tenant}', 'x', 'user', 'x', 'x.y', 'x'${value})`,
        ),
      );
    expect((await insert(A)).rowCount).toBe(1);
    await expect(insert(B)).rejects.toMatchObject({ code: '42501' });
    await expect(insert(A, ', seq', ', 1')).rejects.toMatchObject({ code: '428C9' });
  });

  it('goes with its operation, when the engine forgets old ones', async () => {
    await engine.query('BEGIN');
    await engine.query('DELETE FROM trivet.operation WHERE id = $1', [ids.operation]);
    expect(
      (await engine.query('SELECT FROM trivet.operation_event WHERE operation_id = $1', [ids.operation])).rowCount,
    ).toBe(0);
    await engine.query('ROLLBACK');
  });
});
