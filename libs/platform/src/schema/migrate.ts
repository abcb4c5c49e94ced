import { setTimeout } from 'node:timers/promises';
import { ConfigError } from '#platform/config/config';
import { source } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';

const ROLES = ['trivet_owner', 'trivet_app', 'trivet_engine'];
/** Any two processes that migrate the same database must meet at the same number. */
const MIGRATION_LOCK = 7_411_918;
const LOCK_EVERY_MS = 200;

/**
 * Brings the schema to this release as the owner role. TypeORM has no lock between processes, so one advisory lock
 * covers the run. Safe to repeat and to run from several hosts at once.
 */
export async function migrate(ownerUrl: string): Promise<{ applied: string[] }> {
  const owner = source(ownerUrl, 'trivet:migrate', 2, {
    statementMs: 0,
    answerMs: 0,
    idleMs: 30_000,
    migrations: MIGRATIONS,
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
    await lock.query('CREATE SCHEMA IF NOT EXISTS trivet');
    const applied = await owner.runMigrations({ transaction: 'each' });
    return { applied: applied.map(migration => migration.name) };
  } finally {
    await lock.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]).catch(() => {});
    await lock.release();
    await owner.destroy();
  }
}

/** Nothing was begun: whoever runs migrations looks at the address, the server, or the login. */
function unreachable(ownerUrl: string, error: unknown): ConfigError {
  const { code, message } = error as NodeJS.ErrnoException;
  // A host with several addresses is refused once for each, in an error without words of its own.
  const why = message || code || 'no answer';
  return new ConfigError(
    `TRIVET_DATABASE_OWNER_URL: cannot connect to PostgreSQL at ${new URL(ownerUrl).host}: ${why}`,
  );
}
