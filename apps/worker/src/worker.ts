import { BackendRegistry, blockBackendKind, blockBackendKinds, objectBackendKinds } from '#backends/registry';
import { changeBackground } from '#changes/change-background';
import { changeHandlers } from '#changes/change-handlers';
import { beside } from '#operations/beside';
import { readEngineFigures, readWorkerFigures } from '#operations/figures';
import { OperationWorker } from '#operations/worker';
import { bindBlockFigures } from '#platform/block-metrics';
import { connectDatabase, type ProcessContext, VERSION } from '#platform/boot';
import type { Config } from '#platform/config';
import { startHealthServer } from '#platform/health-http';
import { loadKeyring } from '#platform/kek';
import { bindEngineFigures } from '#platform/metrics';
import { SecretBox } from '#platform/secrets';
import { bindWorkerFigures } from '#platform/worker-metrics';
import { Audit } from '#storage/audit';
import { BackendDirectory } from '#storage/backend-directory';
import { StoreKeeper } from '#storage/backends/store-keeper';
import { BlockBackground } from '#storage/block-background';
import { blockHandlers } from '#storage/block-handlers';
import { BucketMeter } from '#storage/buckets/bucket-meter';
import { BackendEnds } from '#storage/drain/backend-ends';
import { TenantDrain } from '#storage/drain/tenant-drain';
import { ForgetGone } from '#storage/forget-gone';
import { readBlockFigures } from '#storage/pools/block-figures';
import { PoolSampler } from '#storage/pools/pool-sampler';
import { SessionKeeper } from '#storage/sessions/session-keeper';
import { SnapshotSessionService } from '#storage/sessions/snapshot-session-service';
import { storageHandlers } from '#storage/storage';
import { readApplianceId } from '#tenancy/appliance';
import { AuditRetention } from '#tenancy/audit-retention';

export const REQUIRED = [
  'TRIVET_DATABASE_URL',
  'TRIVET_DATABASE_ENGINE_URL',
  'TRIVET_REDIS_URL',
  'TRIVET_KEK_FILE',
] as const satisfies (keyof Config)[];

type WorkerConfig = Config & { [K in (typeof REQUIRED)[number]]-?: NonNullable<Config[K]> };

/** Health is served first, so that a worker waiting for its database says so; parts stop in the reverse order. */
export async function startWorker(context: ProcessContext<WorkerConfig>): Promise<void> {
  const { config, log, health, shutdown } = context;
  const listen = config.TRIVET_WORKER_METRICS_LISTEN;
  const server = await startHealthServer(health, listen, 'TRIVET_WORKER_METRICS_LISTEN');
  shutdown.add('health', () => server.close());
  log.info({ address: `${listen.host}:${server.port}` }, 'health and metrics are served');
  const secrets = new SecretBox(loadKeyring(config.TRIVET_KEK_FILE));
  const database = await connectDatabase(
    {
      appUrl: config.TRIVET_DATABASE_URL,
      engineUrl: config.TRIVET_DATABASE_ENGINE_URL,
      poolSize: config.TRIVET_DATABASE_POOL,
      applicationName: 'trivet:worker',
    },
    context,
  );
  shutdown.add('database', () => database.close());
  health.addCheck('database', async () => {
    await database.ping();
    return undefined;
  });
  bindEngineFigures(() => readEngineFigures(database));
  bindWorkerFigures(() => readWorkerFigures(database));
  bindBlockFigures(() => readBlockFigures(database));

  const applianceId = await readApplianceId(database);
  const kinds = objectBackendKinds({ fakeFile: config.TRIVET_FAKE_BACKEND_FILE });
  const backends = new BackendDirectory(database, new BackendRegistry(kinds, applianceId), secrets);
  const blockKinds = blockBackendKinds({ fakeFile: config.TRIVET_FAKE_BLOCK_FILE });
  const blocks = new BackendDirectory(database, new BackendRegistry(blockKinds, applianceId), secrets);
  shutdown.add('backends', async () => {
    backends.close();
    blocks.close();
  });
  const audit = new Audit(database, backends, secrets, config.TRIVET_AUDIT_MS);
  const forgetGone = new ForgetGone(database);
  const auditRetention = new AuditRetention(database, config.TRIVET_AUDIT_LOG_DAYS);
  const meter = new BucketMeter(database, backends);
  const stores = new StoreKeeper(database, backends);
  const tenantDrain = new TenantDrain(database, new BackendEnds(database, blocks, backends));
  const blockBackground = new BlockBackground(database, blocks, kind => blockBackendKind(blockKinds, kind), {
    auditMs: config.TRIVET_BLOCK_AUDIT_MS,
    more: {
      'pool samples': new PoolSampler(database),
      ...changeBackground(database, { retentionMs: config.TRIVET_INDEX_RETENTION_MS }),
      sessions: new SessionKeeper(
        database,
        new SnapshotSessionService({
          database,
          secrets,
          driverOf: kind => (blockKinds.some(known => known.kind === kind) ? config.TRIVET_CSI_DRIVER_NAME : undefined),
          ttlMs: config.TRIVET_SNAPSHOT_SESSION_TTL_MS,
        }),
      ),
    },
  });
  const apart = [
    beside('object audit', signal => audit.round(signal)),
    beside('bucket meter', signal => meter.round(signal)),
    beside('object stores', signal => stores.round(signal)),
    beside('audit log', () => auditRetention.round()),
    beside('block volumes', signal => blockBackground.round(signal)),
  ];
  // Without a first look every new volume is refused.
  health.addCheck('pools', () =>
    blockBackground.knowsPools ? undefined : 'no look at the pools of block volumes yet',
  );
  // Else `status` after `up` knows nothing of a store.
  health.addCheck('stores', () => (stores.hasLooked ? undefined : 'no look at the object stores yet'));
  const worker = new OperationWorker({
    database,
    handlers: [
      ...storageHandlers(backends, secrets),
      ...blockHandlers(blocks, secrets, { recycleMs: config.TRIVET_RECYCLE_MS }),
      ...changeHandlers(database, blocks),
    ],
    probeBackend: async (tenantId, backendId) => {
      const isBlock = await blocks.knows(tenantId, backendId);
      await (isBlock ? blocks : backends).probe(tenantId, backendId);
    },
    version: VERSION,
    redis: config.TRIVET_REDIS_URL,
    redisPrefix: config.TRIVET_REDIS_PREFIX,
    leaseMs: config.TRIVET_LEASE_MS,
    reconcileMs: config.TRIVET_RECONCILE_MS,
    concurrency: config.TRIVET_WORKER_CONCURRENCY,
    tenantCap: config.TRIVET_TENANT_CAP,
    background: async signal => {
      await forgetGone.round();
      await tenantDrain.round(signal);
      for (const begin of apart) begin(signal);
    },
  });
  worker.start();
  shutdown.add('operations', () => worker.stop(config.TRIVET_SHUTDOWN_MS * 0.7));
  log.info({ worker: worker.id, redis: config.TRIVET_REDIS_URL === 'none' ? 'none' : 'used' }, 'operations are run');
}
