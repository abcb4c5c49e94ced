import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { MIGRATIONS } from '#platform/migrations/all';

/** What readiness compares with the database: TypeORM reads it from the class's name. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(migration => Number(migration.name.slice(-13))));

const OF_DATABASE = sql('schema_version', 'SELECT version FROM trivet.schema_version()');

/** Rejects while the database does not answer, or has an older schema than this release: `unavailable`. */
export async function requireSchema(database: Database): Promise<void> {
  const [row] = await database.call<{ version: string }>(OF_DATABASE, []);
  if (Number(row?.version) < SCHEMA_VERSION)
    throw new StorageError('unavailable', 'the database schema is older than this release: run `trivet migrate`');
}
