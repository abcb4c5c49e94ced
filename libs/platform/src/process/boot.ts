import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { type Config, ConfigError, exitOnConfigError, loadConfig, widenThreadPool } from '#platform/config/config';
import { Health } from '#platform/health/health';
import { configureLogging, createLogger, type Logger } from '#platform/logging/log';
import { startProcessMetrics } from '#platform/metrics/metrics';
import { PACKAGE_ROOT } from '#platform/package-root';
import { returnLargeMemory } from '#platform/process/allocator';
import { Shutdown } from '#platform/process/shutdown';
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
 * @param isLight it does no work on files and hashes no passwords
 */
export async function runProcess<K extends keyof Config>(
  app: string,
  required: readonly K[],
  start: (context: ProcessContext<Required<K>>) => Promise<void>,
  { isLight = false } = {},
): Promise<void> {
  if (!isLight) {
    widenThreadPool();
    returnLargeMemory();
  }
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
