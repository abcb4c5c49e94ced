import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import { DatabaseClient } from '#platform/database/database-client';
import { sql } from '#platform/database/sql';
import { SCHEMA_VERSION } from '#platform/schema/schema-version';
import { withDatabase } from '../database.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const CONNECT_MS = 5_000;

/** One statement, as whoever the address names. */
export async function ask<Row extends object>(url: string, text: string): Promise<Row> {
  const client = new DatabaseClient({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: 5_000,
  });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows[0] as Row;
  } finally {
    await client.end();
  }
}

/** What a role may do, by PostgreSQL's own word. */
export interface RoleFacts {
  name: string;
  /** SUPERUSER or BYPASSRLS. */
  bypasses: boolean;
  /** Of trivet.operation: that it may be read; of trivet.secret: the same. */
  operations: boolean;
  secrets: boolean;
}

const ROLE = `
  SELECT rolname AS name, rolsuper OR rolbypassrls AS bypasses,
         has_table_privilege('trivet.operation', 'SELECT') AS operations,
         has_table_privilege('trivet.secret', 'SELECT') AS secrets
    FROM pg_roles WHERE rolname = current_user`;

/** The engine role sees operations of all tenants, so it may see nothing else. */
export function engineFindings({ name, bypasses, operations, secrets }: RoleFacts): Finding[] {
  const remedy = 'grants of `trivet migrate` are for trivet_engine: use that role in TRIVET_DATABASE_ENGINE_URL';
  if (bypasses) return [fail('engine role', `${name} can bypass row security`, remedy)];
  if (!operations) return [fail('engine role', `${name} may not read operations`, remedy)];
  if (secrets) return [fail('engine role', `${name} may read secrets`, remedy)];
  return [ok('engine role', name)];
}

export function checkEngineRole(url: string): Promise<Finding[]> {
  return findings(
    'engine role',
    'TRIVET_DATABASE_ENGINE_URL: is the password right, is the database migrated?',
    async () => engineFindings(await ask<RoleFacts>(url, ROLE)),
  );
}

/** @param version of the database; null: nobody has migrated it */
export function schemaFindings(version: number | null): Finding[] {
  if (version === null || version < SCHEMA_VERSION) {
    const what = version === null ? 'there is none' : 'the database is older than this program';
    return [fail('schema', what, './trivet migrate (in a container: the command `migrate`)')];
  }
  if (version > SCHEMA_VERSION)
    return [
      warn('schema', 'the database is newer than this program', 'update the program: it may be refused tomorrow'),
    ];
  return [ok('schema', 'of this release')];
}

export function checkSchema(url: string): Promise<Finding[]> {
  return findings('schema', 'see the check of postgres', async () => {
    try {
      const { version } = await ask<{ version: string }>(url, 'SELECT version FROM trivet.schema_version()');
      return schemaFindings(Number(version));
    } catch (error) {
      if (/^(3F000|42P01|42883)$/.test((error as { code?: string }).code ?? '')) return schemaFindings(null);
      throw error;
    }
  });
}

const TENANTS = sql(
  'doctor_tenants',
  `SELECT tenant_id AS "tenantId" FROM trivet.list_tenants()
   UNION ALL SELECT tenant_id FROM trivet.appliance_tenant()`,
);
/** The newest: what was sealed last is what is needed next. */
const SAMPLE = sql(
  'doctor_secrets',
  `SELECT owner_table AS "table", owner_id AS "rowId", name AS "column", sealed FROM trivet.secret
    WHERE tenant_id = $1 ORDER BY owner_id DESC LIMIT 10`,
);

interface Row {
  table: string;
  rowId: string;
  column: string;
  sealed: Buffer;
}

/** Whether the key file is the one that the stored secrets were sealed with. */
export function checkStoredSecrets(url: string, secrets: SecretBox): Promise<Finding[]> {
  return findings('stored secrets', 'see the check of postgres', async () => {
    let opened = 0;
    let shut = 0;
    await withDatabase({ appUrl: url, app: 'doctor' }, async database => {
      for (const { tenantId } of await database.call<{ tenantId: string }>(TENANTS, [])) {
        const rows = await database.withTenant(tenantId, tx => tx.query<Row>(SAMPLE, [tenantId]));
        for (const { table, rowId, column, sealed } of rows) {
          try {
            secrets.open(decodeSealed(sealed), { tenantId, table, rowId, column });
            opened++;
          } catch {
            shut++;
          }
        }
      }
    });
    return secretFindings(opened, shut);
  });
}

export function secretFindings(opened: number, shut: number): Finding[] {
  if (shut === 0) return [ok('stored secrets', opened === 0 ? 'there are none' : `${opened} of ${opened} opened`)];
  const detail = `the key file opens ${opened} of ${opened + shut} that were tried`;
  return [
    fail('stored secrets', detail, 'put the key file back that belongs to this database (runbook, A lost key file)'),
  ];
}
