import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { to as copyTo } from 'pg-copy-streams';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { DumpWriter } from '#platform/dump/dump-file';
import { columnList, type DumpedTable, qualified, sequencesOf, tablesOf } from '#platform/dump/tables';
import { appliedMigrations } from '#platform/schema/applied-migrations';
import { LOCK_EVERY_MS, MIGRATION_LOCK } from '#platform/schema/migrate';

const PIECE_BYTES = 4 * 2 ** 20;
const RECORDS_KEPT = 100;

/** What a dump says of itself, in about.json. */
export interface AboutDump {
  format: 1;
  release: string;
  takenAt: string;
  /** In their order: the shape of what follows. */
  migrations: readonly string[];
  tables: readonly DumpedTable[];
  /** Of the keys with which its secrets are sealed; the keys are not in it. */
  keys: readonly string[];
  /** Of the appliance that it was taken of, without passwords. */
  settings: Readonly<Record<string, string>>;
  /** The last migration of the upgrade before which it was taken. */
  before?: string;
}

export interface DumpOptions {
  release: string;
  settings: Readonly<Record<string, string>>;
  before?: string;
  /** Entries besides, sealed by the caller. */
  more?: Readonly<Record<string, Buffer>>;
  /** Throws when it is not to be written. */
  mayWrite?(about: AboutDump): void;
}

export interface Dumped {
  rows: number;
  /** Why the database does not know of it. */
  unrecorded?: string;
}

/**
 * Writes all that the database holds at one instant, while everything runs, by the owner's login. Migrations wait meanwhile, and
 * nothing else does: one that rewrote a table would leave it empty for a transaction that began before.
 */
export async function dump(ownerUrl: string, path: string, options: DumpOptions): Promise<Dumped> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect();
  const writer = new DumpWriter(path);
  try {
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await shareMigrationLock(client);
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const tables = await tablesOf(client);
    const about: AboutDump = {
      format: 1,
      release: options.release,
      takenAt: new Date().toISOString(),
      migrations: await appliedMigrations(client),
      tables,
      keys: await keysOf(client),
      settings: options.settings,
      ...(options.before !== undefined && { before: options.before }),
    };
    options.mayWrite?.(about);
    await writer.add('about.json', json(about));
    for (const [name, bytes] of Object.entries(options.more ?? {})) await writer.add(name, bytes);
    let rows = 0;
    for (const table of tables) rows += await dumpTable(client, table, writer);
    await writer.add('sequences.json', json(await sequencesOf(client)));
    await client.query('COMMIT');
    await writer.finish();
    try {
      await record(client, options.release, path, rows);
      return { rows };
    } catch (error) {
      return { rows, unrecorded: (error as Error).message };
    }
  } finally {
    await writer.close();
    await client.end().catch(() => {});
  }
}

/** Who waited in a statement would hold the snapshot that an index which is built beside writers waits for. */
async function shareMigrationLock(client: DatabaseClient): Promise<void> {
  const attempt = 'SELECT pg_try_advisory_lock_shared($1) AS taken';
  while (!(await client.query<{ taken: boolean }>(attempt, [MIGRATION_LOCK])).rows[0]!.taken)
    await setTimeout(LOCK_EVERY_MS);
}

/** For who asks when the last one was taken. Releases from before it have no place for that. */
async function record(client: DatabaseClient, release: string, path: string, rows: number): Promise<void> {
  const { rows: found } = await client.query<{ made: boolean }>(
    "SELECT to_regclass('trivet.appliance_backup') IS NOT NULL AS made",
  );
  if (!found[0]!.made) return;
  await client.query(
    'INSERT INTO trivet.appliance_backup (release, host, file, rows, bytes) VALUES ($1, $2, $3, $4, $5)',
    [release, hostname(), resolve(path), rows, statSync(path).size],
  );
  await client.query(
    `DELETE FROM trivet.appliance_backup
      WHERE taken_at < (SELECT taken_at FROM trivet.appliance_backup ORDER BY taken_at DESC OFFSET $1 LIMIT 1)`,
    [RECORDS_KEPT],
  );
}

const json = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

/** By a query: COPY of a table with row security is refused. */
async function dumpTable(client: DatabaseClient, table: DumpedTable, writer: DumpWriter): Promise<number> {
  const copied = client.query(copyTo(`COPY (SELECT ${columnList(table)} FROM ${qualified(table.name)}) TO STDOUT`));
  let piece: Buffer[] = [];
  let bytes = 0;
  let count = 0;
  const write = async () => {
    if (bytes === 0) return;
    await writer.add(`data/${table.name}/${String(++count).padStart(6, '0')}`, Buffer.concat(piece));
    piece = [];
    bytes = 0;
  };
  for await (const chunk of copied as AsyncIterable<Buffer>) {
    piece.push(chunk);
    bytes += chunk.length;
    if (bytes >= PIECE_BYTES) await write();
  }
  await write();
  return copied.rowCount;
}

/** Sealed values begin with their version, the length of the key's id, and that id. */
async function keysOf(client: DatabaseClient): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT DISTINCT convert_from(substring(sealed FROM 3 FOR get_byte(sealed, 1)), 'UTF8') AS id
       FROM (SELECT sealed FROM trivet.secret UNION ALL SELECT sealed FROM trivet.idempotency_key) s
      WHERE sealed IS NOT NULL ORDER BY id`,
  );
  return rows.map(({ id }) => id);
}
