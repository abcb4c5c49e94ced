import { setTimeout } from 'node:timers/promises';
import type { DatabaseClient } from '#platform/database/database-client';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration, TableLock, Work } from '#platform/migrations/locks';
import { appliedMigrations } from '#platform/schema/applied-migrations';

/*
 * What a migration to this release will do to this database, before it does anything: migrations say what they lock and
 * whether they go through all rows (locks.ts), and the catalogue says how many there are.
 */

/** `seconds` were measured with so many rows. */
const MEASURED_ROWS = 10_000_000;
/** Part of a table with its indexes that is written; an index of one of ours is at most so much of it. */
const WRITTEN: Record<Work, number> = { scan: 0, index: 0.3, rewrite: 1, update: 1 };
/** No statement of ours holds a table for so long. */
const LOOK_AGAIN_MS = 2_000;

export interface TableWork extends TableLock {
  migration: string;
  table: string;
  /** As the last ANALYZE saw it. */
  rows: number;
  /** Reckoned for these rows. */
  seconds: number;
  /** Of room on the server's disk until the migration has committed, its log with it; reckoned. */
  bytes: number;
  /** Of these, what it has more from then on. */
  staying: number;
}

export interface UpgradePlan {
  /** A release of Trivet made it. */
  made: boolean;
  /** Volumes or buckets are in it. */
  holds: boolean;
  applied: readonly string[];
  /** Of a newer release, which this one does not know. */
  unknown: readonly string[];
  pending: readonly string[];
  work: readonly TableWork[];
  /** Of the appliance; null: none that is known, or a release from before they were. */
  lastBackup: { takenAt: Date; host: string; file: string } | null;
}

export async function planUpgrade(
  client: DatabaseClient,
  migrations: readonly (new () => Migration)[] = MIGRATIONS,
): Promise<UpgradePlan> {
  const made = await has(client, 'migration');
  const applied = made ? await appliedMigrations(client) : [];
  const known = new Set<string>(migrations.map(({ name }) => name));
  const pending = migrations.filter(({ name }) => !applied.includes(name));
  return {
    made,
    holds: made && (await holdsAnything(client)),
    applied,
    unknown: applied.filter(name => !known.has(name)),
    pending: pending.map(({ name }) => name),
    work: made ? await workOf(client, pending) : [],
    lastBackup: await lastBackup(client),
  };
}

const has = async (client: DatabaseClient, table: string): Promise<boolean> =>
  (await client.query<{ has: boolean }>('SELECT to_regclass($1) IS NOT NULL AS has', [`trivet.${table}`])).rows[0]!.has;

async function holdsAnything(client: DatabaseClient): Promise<boolean> {
  for (const table of ['volume', 'bucket'])
    if (
      (await has(client, table)) &&
      (await client.query<{ holds: boolean }>(`SELECT EXISTS (SELECT FROM trivet.${table}) AS holds`)).rows[0]!.holds
    )
      return true;
  return false;
}

async function workOf(client: DatabaseClient, pending: readonly (new () => Migration)[]): Promise<TableWork[]> {
  const locks = pending.flatMap(type =>
    Object.entries(new type().locks).map(([table, lock]) => ({ migration: type.name, table, lock })),
  );
  const { rows: sizes } = await client.query<{ table: string; rows: number; bytes: number }>(
    `SELECT c.relname AS table, greatest(c.reltuples, 0)::float8 AS rows, pg_total_relation_size(c.oid)::float8 AS bytes
       FROM pg_class c
      WHERE c.relnamespace = 'trivet'::regnamespace AND c.relkind = 'r' AND c.relname = ANY ($1)`,
    [[...new Set(locks.map(({ table }) => table))]],
  );
  const sizeOf = new Map(sizes.map(({ table, ...size }) => [table, size]));
  return locks.map(({ migration, table, lock }) => {
    // What a migration before it makes is empty.
    const { rows, bytes } = sizeOf.get(table) ?? { rows: 0, bytes: 0 };
    const written = Math.ceil(bytes * Math.max(0, ...lock.work.map(work => WRITTEN[work])));
    return {
      ...lock,
      migration,
      table,
      rows,
      seconds: (lock.seconds * rows) / MEASURED_ROWS,
      // Once in the table or its index, once in the log.
      bytes: 2 * written,
      // The old table goes with the commit that brings the new one.
      staying: lock.work.includes('rewrite') ? 0 : written,
    };
  });
}

async function lastBackup(client: DatabaseClient): Promise<UpgradePlan['lastBackup']> {
  if (!(await has(client, 'appliance_backup'))) return null;
  const { rows } = await client.query<{ takenAt: Date; host: string; file: string }>(
    'SELECT taken_at AS "takenAt", host, file FROM trivet.appliance_backup ORDER BY taken_at DESC LIMIT 1',
  );
  return rows[0] ?? null;
}

/** Process ids at the server whose transactions hold one of these tables for longer than ours do, by table. */
export async function whoHolds(client: DatabaseClient, work: readonly TableWork[]): Promise<Map<string, number>> {
  const tables = [...new Set(work.filter(({ mode }) => mode === 'ACCESS EXCLUSIVE').map(({ table }) => table))];
  if (tables.length === 0) return new Map();
  const before = new Set((await holders(client, tables)).map(({ key }) => key));
  if (before.size === 0) return new Map();
  await setTimeout(LOOK_AGAIN_MS);
  const still = (await holders(client, tables)).filter(({ key }) => before.has(key));
  return new Map(still.map(({ table, pid }) => [table, pid]));
}

/** A virtual transaction has its number for as long as it lasts; when it began, other roles are not told. */
async function holders(client: DatabaseClient, tables: readonly string[]) {
  const { rows } = await client.query<{ key: string; table: string; pid: number }>(
    `SELECT c.relname || ' ' || l.virtualtransaction AS key, c.relname AS table, l.pid
       FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
      WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND c.relnamespace = 'trivet'::regnamespace AND c.relname = ANY ($1) AND l.pid <> pg_backend_pid()`,
    [tables],
  );
  return rows;
}
