import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Config, ConfigError, exitOnConfigError, loadConfig, widenThreadPool } from '#platform/config/config';
import { hostsIn } from '#platform/config/database-address';
import { Database, type DatabaseOptions } from '#platform/database/database';
import { ofAddress } from '#platform/database/database-client';
import { isStorageError, StorageError } from '#platform/errors';
import { Health } from '#platform/health/health';
import { configureLogging, createLogger, type Logger } from '#platform/logging/log';
import { startProcessMetrics } from '#platform/metrics/metrics';
import { PACKAGE_ROOT } from '#platform/package-root';
import { returnLargeMemory } from '#platform/process/allocator';
import { Shutdown } from '#platform/process/shutdown';
import { requireSchema } from '#platform/schema/schema-version';
import { startTracing } from '#platform/tracing/tracing';

/** For the last spans, at a collector that may be away. */
const FLUSH_MS = 2_000;

export const VERSION: string = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')).version;

type Required<K extends keyof Config> = Config & { [P in K]-?: NonNullable<Config[P]> };

/** What a process is given to start its parts with: each part adds its check and its step of stopping. */
export interface ProcessContext<C = Config> {
  /** gateway or worker. */
  app: string;
  config: C;
  log: Logger;
  health: Health;
  shutdown: Shutdown;
}

/**
 * The frame of every daemon: configuration, log, metrics, signals, then `start`, then ready. A wrong configuration ends
 * the process with one line for each problem and code 78, anything else that stops the start with code 1.
 */
export async function runProcess<K extends keyof Config>(
  app: string,
  required: readonly K[],
  start: (context: ProcessContext<Required<K>>) => Promise<void>,
): Promise<void> {
  widenThreadPool();
  returnLargeMemory();
  const config = configure(required);
  const log = createLogger(app);
  const health = new Health();
  const shutdown = new Shutdown({ deadlineMs: config.TRIVET_SHUTDOWN_MS, onBegin: () => health.setStopping() });
  shutdown.listen();
  startProcessMetrics(app, VERSION);
  log.info({ version: VERSION, node: process.version }, 'starting');
  try {
    const stopTracing = await startTracing(app, VERSION);
    // First in, so last out: the others still end spans.
    if (stopTracing) shutdown.add('tracing', stopTracing, FLUSH_MS);
    await start({ app, config, log, health, shutdown });
    health.setStarted();
    log.info('started');
    // Node writes it at an orderly end, which nobody promises. Without effect where NODE_COMPILE_CACHE is not set.
    flushCompileCache();
  } catch (error) {
    if (shutdown.stopping) return; // a part that was being started saw the stop
    if (error instanceof ConfigError) exitOnConfigError(error);
    log.fatal({ err: error }, 'cannot start');
    await shutdown.stop('cannot start', 1);
  }
}

function configure<K extends keyof Config>(required: readonly K[]): Required<K> {
  try {
    const config = loadConfig(required);
    configureLogging({ level: config.TRIVET_LOG_LEVEL });
    return config;
  } catch (error) {
    return exitOnConfigError(error);
  }
}

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
