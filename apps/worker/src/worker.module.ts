import { Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { AlertWatch } from '#alerts/alert-watch';
import { AlertsModule } from '#alerts/alerts.module';
import { Sender } from '#alerts/sender';
import { demandLeases } from '#backends/lease-demand';
import { poolAnswers } from '#backends/reflink/pool-answers';
import { blockBackendKinds } from '#backends/registry';
import { HANDLERS, OperationHandlersModule } from '#changes/operation-handlers.module';
import { readSlowCallFigures } from '#operations/administration/slow-calls';
import { readEngineFigures, readLateTasks, readWorkerFigures } from '#operations/workers/figures';
import { StorageHost } from '#operations/workers/storage-host';
import { OperationWorker } from '#operations/workers/worker';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { bindBlockFigures, bindFileCallFigures } from '#platform/metrics/block-metrics';
import { bindEngineFigures } from '#platform/metrics/metrics';
import { bindLateTasks, bindSlowCalls, bindWorkerFigures } from '#platform/metrics/worker-metrics';
import { VERSION } from '#platform/process/boot';
import { type AppContext, CONFIG, CONTEXT } from '#platform/process/platform.module';
import { key, provide } from '#platform/process/providers';
import type { ExportLeaseKeeper } from '#storage/block/export-leases/export-lease-keeper';
import { readBlockFigures } from '#storage/block/pools/block-figures';
import { BlockSessionsModule } from '#storage/block/sessions/block-sessions.module';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { BackendDirectoriesModule, BLOCK_BACKENDS, OBJECT_BACKENDS } from '#storage/shared/backend-directories.module';
import { exportLeases, LEASES, periodicTasks, TASKS } from './periodic-tasks.js';

const STORES_MS = 5_000;
const STORAGE_HOST = key<StorageHost>('storage host');

/** Runs operations and periodic tasks from the moment when all of it is there. */
@Module({
  imports: [AlertsModule, BackendDirectoriesModule, BlockSessionsModule, OperationHandlersModule],
  providers: [
    provide(STORAGE_HOST, [CONFIG, Database], async (config, database) => {
      const host = await StorageHost.join(database, config.TRIVET_HOST, VERSION);
      await host.beat();
      // Before the first operation: another host may serve what this one could.
      if (host.isOneOfSeveral) demandLeases();
      return host;
    }),
    provide(LEASES, [Database, BLOCK_BACKENDS, STORAGE_HOST], (database, blocks, host) =>
      exportLeases({ database, blocks, host }),
    ),
    provide(
      TASKS,
      [
        CONTEXT,
        Database,
        SecretBox,
        OBJECT_BACKENDS,
        BLOCK_BACKENDS,
        SnapshotSessionService,
        AlertWatch,
        Sender,
        STORAGE_HOST,
      ],
      ({ config, log, shutdown }, database, secrets, objects, blocks, sessions, alerts, sender, host) => {
        const refuse = (reason: string): void => {
          log.fatal(reason);
          void shutdown.stop(reason, 1);
        };
        return periodicTasks({ config, database, secrets, objects, blocks, sessions, alerts, sender, host, refuse });
      },
    ),
    provide(
      OperationWorker,
      [CONFIG, Database, HANDLERS, OBJECT_BACKENDS, BLOCK_BACKENDS, TASKS, LEASES, STORAGE_HOST],
      (config, database, handlers, objects, blocks, tasks, leases, host) =>
        new OperationWorker({
          database,
          handlers,
          probeBackend: async (tenantId, backendId) => {
            const isBlock = await blocks.knows(tenantId, backendId);
            await (isBlock ? blocks : objects).probe(tenantId, backendId);
          },
          version: VERSION,
          host,
          redis: config.TRIVET_REDIS_URL,
          redisPrefix: config.TRIVET_REDIS_PREFIX,
          leaseMs: config.TRIVET_LEASE_MS,
          reconcileMs: config.TRIVET_RECONCILE_MS,
          concurrency: config.TRIVET_WORKER_CONCURRENCY,
          tenantCap: config.TRIVET_TENANT_CAP,
          tasks,
          pulse: [leases],
        }),
    ),
  ],
})
export class WorkerModule implements OnApplicationBootstrap {
  constructor(
    @Inject(CONTEXT) private readonly context: AppContext,
    private readonly database: Database,
    private readonly worker: OperationWorker,
    @Inject(LEASES) private readonly leases: ExportLeaseKeeper,
  ) {}

  onApplicationBootstrap(): void {
    const { database, worker } = this;
    const { config, health, log, shutdown } = this.context;
    bindEngineFigures(() => readEngineFigures(database));
    bindWorkerFigures(() => readWorkerFigures(database));
    bindLateTasks(() => readLateTasks(database));
    bindSlowCalls(() => readSlowCallFigures(database));
    bindBlockFigures(() => readBlockFigures(database, blockBackendKinds()));
    bindFileCallFigures(async () => {
      const { inFlight, silent, oldest } = poolAnswers.figures();
      return { inFlight, silent, oldestSeconds: (oldest?.ms ?? 0) / 1_000 };
    });
    // Without a first look every new volume is refused.
    health.addCheck('pools', () =>
      worker.tasks.hasSucceeded('pools') ? undefined : 'no look at the pools of block volumes yet',
    );
    // Else `status` after `up` knows nothing of a store. Those that are silent had their time.
    health.addCheck('stores', () =>
      worker.tasks.hasSucceeded('object-stores', STORES_MS) ? undefined : 'no look at the object stores yet',
    );
    worker.start();
    shutdown.add('operations', () => worker.stop(config.TRIVET_SHUTDOWN_MS * 0.7));
    shutdown.add('exports', () => this.leases.leave(worker.id));
    log.info({ worker: worker.id, redis: config.TRIVET_REDIS_URL === 'none' ? 'none' : 'used' }, 'operations are run');
  }
}
