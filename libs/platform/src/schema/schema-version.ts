import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';

/** What readiness compares with the database: TypeORM reads it from the class's name. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(migration => Number(migration.name.slice(-13))));

const OF_DATABASE = sql('schema_version', 'SELECT version FROM trivet.schema_version()');

const OLDEST = sql('oldest_schema', 'SELECT trivet.oldest_schema() AS version');

/** For who is started with it, and for who runs while it is migrated. */
export const TOO_OLD =
  'the database was migrated by a newer release, with which this one can no longer run: update this program';

/**
 * Rejects while the database does not answer, or has an older schema than this release: `unavailable`. With one
 * that is too new for it nothing helps: `failed_precondition`.
 */
export async function requireSchema(database: Database): Promise<void> {
  const [row] = await database.call<{ version: string }>(OF_DATABASE, []);
  if (Number(row?.version) < SCHEMA_VERSION)
    throw new StorageError('unavailable', 'the database schema is older than this release: run `trivet migrate`');
  if (Number(row?.version) === SCHEMA_VERSION) return;
  const [oldest] = await database.call<{ version: string }>(OLDEST, []);
  if (Number(oldest?.version) > SCHEMA_VERSION) throw new StorageError('failed_precondition', TOO_OLD);
}
