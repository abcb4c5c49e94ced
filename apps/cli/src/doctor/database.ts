import { WAITS_FOR_NOBODY } from '#operations/workers/figures';
import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { sql } from '#platform/database/sql';
import { SCHEMA_VERSION, TOO_OLD } from '#platform/schema/schema-version';
import { withDatabase } from '../database.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const CONNECT_MS = 5_000;

/** One statement, as whoever the address names. */
export async function ask<Row extends object>(url: string, text: string): Promise<Row> {
  const client = new DatabaseClient({
    ...ofAddress(url),
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

/** @param version of the database; null: nobody has migrated it @param oldest a program of which schema may still run with it */
export function schemaFindings(version: number | null, oldest = 0): Finding[] {
  if (version === null || version < SCHEMA_VERSION) {
    const what = version === null ? 'there is none' : 'the database is older than this program';
    return [fail('schema', what, './trivet migrate (in a container: the command `migrate`)')];
  }
  if (oldest > SCHEMA_VERSION) return [fail('schema', TOO_OLD, 'install the release that migrated it, or a newer one')];
  if (version > SCHEMA_VERSION)
    return [
      warn('schema', 'the database is newer than this program', 'update the program: it may be refused tomorrow'),
    ];
  return [ok('schema', 'of this release')];
}

/** As libs/platform/src/database/database-standing.ts refuses it, where the address names several servers. */
const UNDECLARED =
  'SELECT declared_for IS DISTINCT FROM system_identifier AS undeclared FROM trivet.database_standing()';
const undeclared = warn(
  'schema',
  'this database was put back into another server, and nobody has declared that it counts',
  './trivet migrate --restored',
);

export function checkSchema(url: string): Promise<Finding[]> {
  return findings('schema', 'see the check of postgres', async () => {
    try {
      const { version } = await ask<{ version: string }>(url, 'SELECT version FROM trivet.schema_version()');
      if (Number(version) < SCHEMA_VERSION) return schemaFindings(Number(version));
      const standing = await ask<{ undeclared: boolean }>(url, UNDECLARED);
      if (standing.undeclared) return [undeclared];
      if (Number(version) === SCHEMA_VERSION) return schemaFindings(Number(version));
      const { oldest } = await ask<{ oldest: string }>(url, 'SELECT trivet.oldest_schema() AS oldest');
      return schemaFindings(Number(version), Number(oldest));
    } catch (error) {
      if (/^(3F000|42P01|42883)$/.test((error as { code?: string }).code ?? '')) return schemaFindings(null);
      throw error;
    }
  });
}

/** Kinds of operations that have waited for a minute, and that no worker that is up says it can run. */
const UNKNOWN_KINDS = `
  SELECT coalesce(array_agg(DISTINCT o.kind), '{}') AS kinds, count(*)::int AS waiting
    FROM trivet.operation o
   WHERE ${WAITS_FOR_NOBODY}`;

export function checkKinds(url: string): Promise<Finding[]> {
  return findings('operation kinds', 'see the check of the engine role', async () =>
    kindFindings(await ask<{ kinds: string[]; waiting: number }>(url, UNKNOWN_KINDS)),
  );
}

export function kindFindings({ kinds, waiting }: { kinds: readonly string[]; waiting: number }): Finding[] {
  if (waiting === 0) return [ok('operation kinds', 'a worker knows each that waits')];
  const detail = `${waiting} wait that no worker knows: ${kinds.join(', ')}`;
  return [
    warn('operation kinds', detail, 'start a worker of the release of the gateways; the older ones leave them alone'),
  ];
}

/** How far commits of this role wait for standbys. */
export interface CommitFacts {
  commit: string;
  names: string;
  /** That stream now. */
  standbys: number;
}

const COMMITS = `
  SELECT current_setting('synchronous_commit') AS commit, current_setting('synchronous_standby_names') AS names,
         (SELECT count(*)::int FROM pg_stat_replication) AS standbys`;

/** @param wanted TRIVET_DATABASE_STANDBYS */
export function checkCommits(url: string, wanted: number): Promise<Finding[]> {
  return findings('commits', 'see the check of postgres', async () =>
    commitFindings(await ask<CommitFacts>(url, COMMITS), wanted),
  );
}

/** For how many standbys a commit waits: `FIRST 2 (a, b)`, `ANY 1 (a, b)`, `2 (a, b)`, `a, b`. */
export function standbysOf(names: string): number {
  if (names.trim() === '') return 0;
  return Number(/^\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(/i.exec(names)?.[1] ?? 1);
}

export function commitFindings({ commit, names, standbys }: CommitFacts, wanted: number): Finding[] {
  const waits = ['on', 'remote_apply', 'remote_write'].includes(commit) ? standbysOf(names) : 0;
  if (waits >= wanted && standbys >= wanted) return [ok('commits', `wait for ${waits} standbys, ${standbys} stream`)];
  if (waits >= wanted)
    return [
      fail('commits', `wait for ${waits} standbys, and ${standbys} stream`, 'every change waits until they are back'),
    ];
  const how = `synchronous_commit is ${commit}, synchronous_standby_names is '${names}'`;
  return [
    fail(
      'commits',
      `wait for ${waits} standbys, TRIVET_DATABASE_STANDBYS says ${wanted}: ${how}`,
      "a promotion may lose what callers were told: set synchronous_standby_names = 'ANY 1 (*)' and synchronous_commit = on",
    ),
  ];
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
