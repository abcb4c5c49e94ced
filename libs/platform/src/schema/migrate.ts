import { setTimeout } from 'node:timers/promises';
import { type DataSource, QueryFailedError, type QueryRunner } from 'typeorm';
import { ConfigError } from '#platform/config/config';
import { hostsIn, nameOf, parseAddress } from '#platform/config/database-address';
import { source } from '#platform/database/database';
import { silentAmong } from '#platform/database/database-hosts';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';
import type { Migration } from '#platform/migrations/locks';

const ROLES = ['trivet_owner', 'trivet_app', 'trivet_engine'];
/** Any two processes that migrate the same database must meet at the same number, and a dump holds it shared. */
export const MIGRATION_LOCK = 7_411_918;
export const LOCK_EVERY_MS = 200;
/** Who waits for a table holds up everybody who comes after him: no migration waits for longer than callers do. */
const TABLE_LOCK_MS = 2_000;
const AGAIN_MS = 1_000;
const PATIENCE_MS = 600_000;

export interface MigrateOptions {
  /** How long a migration is repeated whose table somebody holds. */
  patienceMs?: number;
  /** Is told once of each migration that waits. */
  say?(line: string): void;
  /** For tests. */
  migrations?: typeof MIGRATIONS;
}

/**
 * Brings the schema to this release as the owner role. TypeORM has no lock between processes, so one advisory lock
 * covers the run. Safe to repeat and to run from several hosts at once.
 */
export async function migrate(
  ownerUrl: string,
  { patienceMs = PATIENCE_MS, say = () => {}, migrations = MIGRATIONS }: MigrateOptions = {},
): Promise<{ applied: string[] }> {
  const owner = source(ownerUrl, 'trivet:migrate', 2, {
    statementMs: 0,
    answerMs: 0,
    idleMs: 30_000,
    lockMs: TABLE_LOCK_MS,
    migrations: migrations.map(unhurried),
  });
  await owner.initialize().catch(error => {
    throw unreachable(ownerUrl, error);
  });
  const lock = owner.createQueryRunner();
  try {
    // Who waited in a statement would hold the snapshot that an index which is built beside writers waits for.
    while (!(await lock.query('SELECT pg_try_advisory_lock($1) AS taken', [MIGRATION_LOCK]))[0].taken)
      await setTimeout(LOCK_EVERY_MS);
    const found = await lock.query('SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)', [ROLES]);
    const missing = ROLES.filter(role => !found.some((row: { rolname: string }) => row.rolname === role));
    if (missing.length > 0)
      throw new StorageError(
        'failed_precondition',
        `the database has no role ${missing.join(', ')}: create it as docs/install.md, "Your own PostgreSQL", shows`,
      );
    const [{ made }] = await lock.query(APPLIED);
    if (!made) await requireAllAnswer(ownerUrl);
    await lock.query('CREATE SCHEMA IF NOT EXISTS trivet');
    const before = await appliedIn(lock);
    await runAll(owner, performance.now() + patienceMs, say);
    const after = await appliedIn(lock);
    return { applied: after.filter(name => !before.includes(name)) };
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => {});
    await lock.release();
    await owner.destroy();
  }
}

/** An empty server may be one to restore into, while the one that has the appliance is away. */
async function requireAllAnswer(ownerUrl: string): Promise<void> {
  const { hosts, url } = parseAddress(ownerUrl) ?? { hosts: [], url: '' };
  if (hosts.length < 2) return;
  const [silent] = await silentAmong({ connectionString: url }, hosts);
  if (silent)
    throw new ConfigError(
      `TRIVET_DATABASE_OWNER_URL: the server that answers has no schema of Trivet, and ${nameOf(silent)} does not answer: name the one alone in which the appliance is to be made`,
    );
}

const APPLIED = "SELECT to_regclass('trivet.migration') IS NOT NULL AS made";

async function appliedIn(runner: QueryRunner): Promise<string[]> {
  if (!(await runner.query(APPLIED))[0].made) return [];
  const rows: { name: string }[] = await runner.query('SELECT name FROM trivet.migration ORDER BY id');
  return rows.map(({ name }) => name);
}

/** One that could not have its table has done nothing; between two attempts whoever waits behind it goes on. */
async function runAll(owner: DataSource, until: number, say: (line: string) => void): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await owner.runMigrations({ transaction: 'each' });
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== '55P03') throw await failed(owner, error);
      if (performance.now() > until)
        throw new StorageError(
          'unavailable',
          'a table is held by a transaction that does not end, a dump perhaps: see pg_stat_activity, then migrate again',
          { cause: error },
        );
      if (attempt === 1) say('a table is held by another transaction: waiting until it has ended');
      await setTimeout(AGAIN_MS);
    }
  }
}

/** What the server says of a statement; what else goes wrong says enough itself. */
async function failed(owner: DataSource, error: unknown): Promise<unknown> {
  if (!(error instanceof QueryFailedError) || (error as { severity?: string }).severity !== 'ERROR') return error;
  const done: { name: string }[] | undefined = await owner
    .query('SELECT name FROM trivet.migration')
    .catch(() => undefined);
  if (done === undefined) return error;
  const names = new Set(done.map(({ name }) => name));
  const next = owner.migrations.map(migration => migration.constructor.name).find(name => !names.has(name));
  return new StorageError(
    'failed_precondition',
    `the migration ${next?.replace(/\d{13}$/, '')} failed: ${error.message}; those before it hold, and the release before runs with them`,
    { cause: error },
  );
}

/**
 * What is built beside writers waits for all transactions that were there before it, and nobody waits for that: with a
 * bound it would begin anew each time.
 */
function unhurried(type: (typeof MIGRATIONS)[number]): (typeof MIGRATIONS)[number] {
  const migration: Migration = new type();
  if (migration.transaction !== false) return type;
  // TypeORM takes number and order from the class's name.
  const { [type.name]: patient } = {
    [type.name]: class {
      readonly transaction = false;
      readonly locks = migration.locks;
      async up(runner: QueryRunner): Promise<void> {
        await runner.query('SET lock_timeout = 0');
        try {
          await migration.up(runner);
        } finally {
          await runner.query('RESET lock_timeout').catch(() => {});
        }
      }
      async down(runner: QueryRunner): Promise<void> {
        await migration.down(runner);
      }
    },
  };
  return patient as unknown as (typeof MIGRATIONS)[number];
}

/** Nothing was begun: whoever runs migrations looks at the address, the server, or the login. */
export function unreachable(ownerUrl: string, error: unknown): ConfigError {
  const { code, message } = error as NodeJS.ErrnoException;
  // A host with several addresses is refused once for each, in an error without words of its own.
  const why = message || code || 'no answer';
  return new ConfigError(`TRIVET_DATABASE_OWNER_URL: cannot connect to PostgreSQL at ${hostsIn(ownerUrl)}: ${why}`);
}
