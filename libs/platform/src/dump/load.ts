import { once } from 'node:events';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';
import { ConfigError } from '#platform/config/config';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import type { AboutDump } from '#platform/dump/dump';
import { type DumpEntry, jsonOf, readDump } from '#platform/dump/dump-file';
import { columnList, type DumpedSequence, type DumpedTable, qualified } from '#platform/dump/tables';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';
import { appliedMigrations } from '#platform/schema/applied-migrations';
import { declareRestored } from '#platform/schema/declare-restored';
import { migrate } from '#platform/schema/migrate';

/*
 * A dump has no schema: the migrations up to its own make it, so a newer release reads what an older one wrote. Rows
 * go in as a whole or not at all, in one transaction; then the later migrations follow.
 */

/** Of a file that was read from end to end, and is as it was written. */
export async function aboutDump(path: string): Promise<AboutDump> {
  let about: AboutDump | undefined;
  let isFirst = true;
  for await (const entry of readDump(path)) {
    if (isFirst && entry.name === 'about.json') about = understood(path, jsonOf(path, entry) as AboutDump);
    isFirst = false;
  }
  if (!about) throw new StorageError('invalid_argument', `${path} is no backup of a Trivet appliance`);
  return about;
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
  /** It is the database that counts from then on (ADR 35). */
  declare?: boolean;
  say?(line: string): void;
  /** Entries that are not of the database. */
  take?(entry: DumpEntry): void;
}

/** Into a database that holds no appliance. Resolves to the number of rows. */
export async function load(
  ownerUrl: string,
  path: string,
  { declare = false, say, take }: LoadOptions = {},
): Promise<{ rows: number }> {
  // All of it before anything is changed: PostgreSQL would refuse damaged rows in words of its own.
  const about = await aboutDump(path);
  await connected(ownerUrl, requireEmpty);
  const known = new Set(about.migrations);
  await migrate(ownerUrl, { migrations: MIGRATIONS.filter(({ name }) => known.has(name)), ...(say && { say }) });
  let isDeclared = false;
  const rows = await connected(ownerUrl, async client => {
    await requireSameShape(client, about);
    await standBack(client);
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await client.query('BEGIN; LOCK TABLE trivet.tenant_user, trivet.operation IN ACCESS EXCLUSIVE MODE');
    await requireEmpty(client);
    const loaded = await unguarded(client, about.tables, () => loadEntries(client, about, path, take));
    isDeclared = declare && (await declareIn(client));
    await client.query('COMMIT');
    await client.query('ANALYZE');
    return loaded;
  });
  await migrate(ownerUrl, say ? { say } : {});
  if (declare && !isDeclared) await declareRestored(ownerUrl);
  return { rows };
}

async function connected<T>(ownerUrl: string, work: (client: DatabaseClient) => Promise<T>): Promise<T> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect().catch(error => {
    throw new ConfigError(`TRIVET_DATABASE_OWNER_URL: cannot connect: ${(error as Error).message}`);
  });
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

async function requireEmpty(client: DatabaseClient): Promise<void> {
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
      'the database of TRIVET_DATABASE_OWNER_URL holds an appliance already, which nothing replaces: name an empty one; ' +
        'a restore that was cut off after its rows were in is finished by `trivet migrate`',
    );
}

/** What later migrations do with rows they have done already, and with none of these. */
async function requireSameShape(client: DatabaseClient, { migrations }: AboutDump): Promise<void> {
  const later = (await appliedMigrations(client)).filter(name => !migrations.includes(name));
  if (later.length > 0)
    throw new StorageError(
      'failed_precondition',
      `the database of TRIVET_DATABASE_OWNER_URL was migrated by a later release than the backup (${later[0]}): name an empty one`,
    );
}

const has = async (client: DatabaseClient, found: string): Promise<boolean> =>
  (await client.query<{ has: boolean }>(`SELECT ${found} IS NOT NULL AS has`)).rows[0]!.has;

/** Processes with several servers in their address see one that nobody has declared, and not an empty appliance (ADR 35). */
async function standBack(client: DatabaseClient): Promise<void> {
  if (await has(client, "to_regclass('trivet.database_restore')"))
    await client.query('TRUNCATE trivet.database_restore');
}

/** With the rows, so that none are there that nobody has declared. False: releases of the dump knew no such thing. */
async function declareIn(client: DatabaseClient): Promise<boolean> {
  if (!(await has(client, "to_regproc('trivet.declare_restored')"))) return false;
  await client.query('SELECT trivet.declare_restored()');
  return true;
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
  let open: Copy | undefined;
  const end = async () => {
    if (!open) return;
    const { stream, refused } = open;
    const done = once(stream, 'finish');
    stream.end();
    await Promise.race([done, refused]);
    rows += stream.rowCount;
    open = undefined;
  };
  try {
    for await (const entry of readDump(path)) {
      const { name, bytes } = entry;
      const [, table] = /^data\/(\w+)\/\d+$/.exec(name) ?? [];
      if (table !== open?.table) await end();
      if (table) {
        open ??= beginCopy(client, table, copyStatement(tables, table));
        await Promise.race([open.refused, written(open.stream, bytes)]);
      } else if (name === 'sequences.json') await standAt(client, jsonOf(path, entry) as DumpedSequence[]);
      else if (name !== 'about.json') take?.(entry);
    }
    await end();
  } finally {
    // The server hears that the rest will not come.
    open?.stream.destroy();
  }
  return rows;
}

interface Copy {
  table: string;
  stream: CopyStreamQuery;
  /** PostgreSQL's own words, also when it refuses between two pieces. */
  refused: Promise<never>;
}

function beginCopy(client: DatabaseClient, table: string, statement: string): Copy {
  const stream = client.query(copyFrom(statement));
  const refused = new Promise<never>((_, reject) => stream.once('error', reject));
  refused.catch(() => {});
  return { table, stream, refused };
}

function copyStatement(tables: readonly DumpedTable[], name: string): string {
  const table = tables.find(known => known.name === name);
  if (!table)
    throw new StorageError('invalid_argument', `the backup holds rows of ${name}, and does not say what they are`);
  return `COPY ${qualified(name)} (${columnList(table)}) FROM STDIN`;
}

const written = (stream: CopyStreamQuery, bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(bytes, error => (error ? reject(error) : resolve()));
  });

async function standAt(client: DatabaseClient, sequences: readonly DumpedSequence[]): Promise<void> {
  for (const { name, last } of sequences)
    if (last !== null) await client.query('SELECT setval($1::regclass, $2)', [qualified(name), last]);
}
