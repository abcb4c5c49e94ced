import { once } from 'node:events';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';
import { ConfigError } from '#platform/config/config';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import type { AboutDump } from '#platform/dump/dump';
import { type DumpEntry, jsonOf, readDump } from '#platform/dump/dump-file';
import { columnList, type DumpedSequence, type DumpedTable, qualified } from '#platform/dump/tables';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';
import { migrate } from '#platform/schema/migrate';

/*
 * A dump has no schema: the migrations up to its own make it, so a newer release reads what an older one wrote. Rows
 * go in as a whole or not at all, in one transaction; then the later migrations follow.
 */

export async function aboutDump(path: string): Promise<AboutDump> {
  for await (const entry of readDump(path)) {
    if (entry.name === 'about.json') return understood(path, jsonOf(path, entry) as AboutDump);
    break;
  }
  throw new StorageError('invalid_argument', `${path} is no backup of a Trivet appliance`);
}

function understood(path: string, about: AboutDump): AboutDump {
  const known = MIGRATIONS.map(({ name }) => name);
  const newer = about.migrations.find(name => !known.includes(name));
  if (about.format !== 1 || newer)
    throw new StorageError(
      'failed_precondition',
      `${path} was written by release ${about.release}, which is newer than this one (${newer ?? `format ${about.format}`}): restore it with that release`,
    );
  return about;
}

export interface LoadOptions {
  say?(line: string): void;
  /** Entries that are not of the database. */
  take?(entry: DumpEntry): void;
}

/** Into a database that holds no appliance. Resolves to the number of rows. */
export async function load(ownerUrl: string, path: string, { say, take }: LoadOptions = {}): Promise<{ rows: number }> {
  const about = await aboutDump(path);
  await requireEmpty(ownerUrl);
  // All of it before anything is changed: PostgreSQL would refuse damaged rows in words of its own.
  for await (const _ of readDump(path));
  const known = new Set(about.migrations);
  await migrate(ownerUrl, { migrations: MIGRATIONS.filter(({ name }) => known.has(name)), ...(say && { say }) });
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect();
  try {
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    // Processes that find it meanwhile see a database that nobody has declared, and not an empty appliance (ADR 35).
    await client.query('TRUNCATE trivet.database_restore');
    await client.query('BEGIN');
    const rows = await unguarded(client, about.tables, () => loadEntries(client, about, path, take));
    await client.query('COMMIT');
    await client.query('ANALYZE');
    await migrate(ownerUrl, say ? { say } : {});
    return { rows };
  } finally {
    await client.end().catch(() => {});
  }
}

async function requireEmpty(ownerUrl: string): Promise<void> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect().catch(error => {
    throw new ConfigError(`TRIVET_DATABASE_OWNER_URL: cannot connect: ${(error as Error).message}`);
  });
  try {
    const { rows: made } = await client.query<{ made: boolean }>(
      "SELECT to_regclass('trivet.tenant_user') IS NOT NULL AND to_regclass('trivet.operation') IS NOT NULL AS made",
    );
    if (!made[0]!.made) return;
    const { rows } = await client.query<{ holds: boolean }>(
      'SELECT EXISTS (SELECT FROM trivet.tenant_user) OR EXISTS (SELECT FROM trivet.operation) AS holds',
    );
    if (rows[0]!.holds)
      throw new StorageError(
        'failed_precondition',
        'the database of TRIVET_DATABASE_OWNER_URL holds an appliance already, which nothing replaces: name an empty one',
      );
  } finally {
    await client.end();
  }
}

/**
 * Rows come in table by table and are what they were: no trigger counts or tells them once more, and keys are proved when all are
 * there. COPY refuses tables whose row security binds the owner.
 */
async function unguarded<T>(
  client: DatabaseClient,
  tables: readonly DumpedTable[],
  work: () => Promise<T>,
): Promise<T> {
  const each = async (change: string) => {
    for (const { name } of tables) await client.query(`ALTER TABLE ${qualified(name)} ${change}`);
  };
  const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
    `SELECT c.relname AS table, k.conname AS name, pg_get_constraintdef(k.oid) AS definition
       FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
      WHERE k.connamespace = 'trivet'::regnamespace AND k.contype = 'f' ORDER BY k.oid`,
  );
  const { rows: forced } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
      WHERE relnamespace = 'trivet'::regnamespace AND relkind = 'r' AND relforcerowsecurity`,
  );
  for (const { table, name } of keys) await client.query(`ALTER TABLE ${qualified(table)} DROP CONSTRAINT "${name}"`);
  for (const { name } of forced) await client.query(`ALTER TABLE ${qualified(name)} NO FORCE ROW LEVEL SECURITY`);
  await each('DISABLE TRIGGER USER');
  // What the migrations themselves have put there.
  await client.query(`TRUNCATE ${tables.map(({ name }) => qualified(name)).join(', ')}`);
  const done = await work();
  await each('ENABLE TRIGGER USER');
  for (const { name } of forced) await client.query(`ALTER TABLE ${qualified(name)} FORCE ROW LEVEL SECURITY`);
  for (const { table, name, definition } of keys)
    await client.query(`ALTER TABLE ${qualified(table)} ADD CONSTRAINT "${name}" ${definition}`);
  return done;
}

async function loadEntries(
  client: DatabaseClient,
  { tables }: AboutDump,
  path: string,
  take: LoadOptions['take'],
): Promise<number> {
  let rows = 0;
  let open: { table: string; copied: CopyStreamQuery } | undefined;
  const end = async () => {
    if (!open) return;
    const done = once(open.copied, 'finish');
    open.copied.end();
    await done;
    rows += open.copied.rowCount;
    open = undefined;
  };
  try {
    for await (const entry of readDump(path)) {
      const { name, bytes } = entry;
      const [, table] = /^data\/(\w+)\/\d+$/.exec(name) ?? [];
      if (table !== open?.table) await end();
      if (table) {
        open ??= { table, copied: beginCopy(client, copyStatement(tables, table)) };
        await written(open.copied, bytes);
      } else if (name === 'sequences.json') await standAt(client, jsonOf(path, entry) as DumpedSequence[]);
      else if (name !== 'about.json') take?.(entry);
    }
    await end();
  } finally {
    // The server hears that the rest will not come.
    open?.copied.destroy();
  }
  return rows;
}

function beginCopy(client: DatabaseClient, statement: string): CopyStreamQuery {
  const copied = client.query(copyFrom(statement));
  // Whoever writes next hears of it.
  copied.on('error', () => {});
  return copied;
}

function copyStatement(tables: readonly DumpedTable[], name: string): string {
  const table = tables.find(known => known.name === name);
  if (!table)
    throw new StorageError('invalid_argument', `the backup holds rows of ${name}, and does not say what they are`);
  return `COPY ${qualified(name)} (${columnList(table)}) FROM STDIN`;
}

const written = (copied: CopyStreamQuery, bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    copied.once('error', reject);
    copied.write(bytes, error => {
      copied.off('error', reject);
      if (error) reject(error);
      else resolve();
    });
  });

async function standAt(client: DatabaseClient, sequences: readonly DumpedSequence[]): Promise<void> {
  for (const { name, last } of sequences)
    if (last !== null) await client.query('SELECT setval($1::regclass, $2)', [qualified(name), last]);
}
