import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '#platform/config/config';
import { hostsIn } from '#platform/config/database-address';
import { Database, type DatabaseOptions } from '#platform/database/database';
import { ofAddress } from '#platform/database/database-client';
import { isStorageError, StorageError } from '#platform/errors';
import type { ProcessContext } from '#platform/process/boot';
import { requireSchema } from '#platform/schema/schema-version';

/** Wrong password, no such role, no such database, no right to connect: waiting does not help. */
const REFUSED = /^(28...|3D000|42501)$/;
/** Connected, but no schema, table, function or right to use them: nobody has migrated yet, or somebody is about to. */
const NOT_MIGRATED = /^(3F000|42P01|42883|42501)$/;
const RETRY_MS = 500;

/**
 * A database that is being restarted or migrated is waited for; one that refuses us is a wrong configuration.
 * @param patienceMs how long to wait before the start fails
 */
export async function connectDatabase(
  options: DatabaseOptions,
  { log, shutdown }: Pick<ProcessContext, 'log' | 'shutdown'>,
  patienceMs = 20_000,
): Promise<Database> {
  const until = performance.now() + patienceMs;
  let database: Database | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      database ??= await Database.connect(options);
      await requireSchema(database);
      return database;
    } catch (error) {
      const code = String((isStorageError(error) ? (error.cause as { code?: unknown }) : undefined)?.code ?? '');
      const reason =
        database && NOT_MIGRATED.test(code) ? new StorageError('unavailable', NO_SCHEMA, { cause: error }) : error;
      if (isStorageError(reason) && reason.kind === 'failed_precondition') {
        await database?.close();
        throw new ConfigError(reason.message);
      }
      const mayCome = isStorageError(reason) && reason.kind === 'unavailable';
      if (!mayCome || performance.now() > until || shutdown.stopping) {
        await database?.close();
        throw REFUSED.test(code) && !database ? refusal(code, options) : reason;
      }
      if (attempt === 1) log.warn({ reason: reason.message, patienceMs }, 'the database is not ready, waiting for it');
      // A dump may be put back there: what comes of it is asked anew, and may not count (ADR 35).
      if (database && NOT_MIGRATED.test(code)) {
        await database.close();
        database = undefined;
      }
      await delay(RETRY_MS);
    }
  }
}

const NO_SCHEMA = "the database has no schema of Trivet: run `trivet migrate` (in a container: the command 'migrate')";

function refusal(code: string, { appUrl, engineUrl }: DatabaseOptions): ConfigError {
  const names = engineUrl === undefined ? 'TRIVET_DATABASE_URL' : 'TRIVET_DATABASE_URL or TRIVET_DATABASE_ENGINE_URL';
  const { pathname } = new URL(ofAddress(appUrl).connectionString!);
  const why = code === '3D000' ? `there is no database ${pathname.slice(1)}` : 'it refuses this user or password';
  return new ConfigError(`${names}: PostgreSQL at ${hostsIn(appUrl)} answers, but ${why} (${code})`);
}
