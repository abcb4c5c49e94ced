import { NestFactory } from '@nestjs/core';
import { startHealthServer } from '#platform/health/health-http';
import { NestLogger } from '#platform/logging/nest-logger';
import { type AppContext, PlatformModule } from '#platform/process/platform.module';
import { WorkerModule } from './worker.module.js';

/** Health is served first, so that a worker waiting for its database says so; parts stop in the reverse order. */
export async function startWorker(context: AppContext): Promise<void> {
  const { config, log, health, shutdown } = context;
  const listen = config.TRIVET_WORKER_METRICS_LISTEN;
  const server = await startHealthServer(health, listen, 'TRIVET_WORKER_METRICS_LISTEN');
  shutdown.add('health', () => server.close());
  log.info({ address: `${listen.host}:${server.port}` }, 'health and metrics are served');
  const root = { imports: [PlatformModule.of(context), WorkerModule] };
  await NestFactory.createApplicationContext(root, { logger: new NestLogger(), abortOnError: false });
}
