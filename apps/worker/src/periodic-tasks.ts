import { AlertDelivery, type AlertWatch } from '#alerts/alert-watch';
import type { Sender } from '#alerts/sender';
import type { BlockStore } from '#backends/block-backend';
import type { ObjectBackend } from '#backends/object-backend';
import { blockBackendKind, blockBackendKinds } from '#backends/registry';
import { IndexRetention } from '#changes/index-retention';
import { IndexScheduler } from '#changes/index-scheduler';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { StorageHost } from '#operations/workers/storage-host';
import type { Config } from '#platform/config/config';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { key } from '#platform/process/providers';
import { StoreMonitor } from '#storage/backends/store-monitor';
import { BlockDriftCheck } from '#storage/block/drift/block-drift';
import { ExportLeaseKeeper } from '#storage/block/export-leases/export-lease-keeper';
import { PoolMonitor } from '#storage/block/pools/pool-monitor';
import { PoolSampler } from '#storage/block/pools/pool-sampler';
import { ExportSupervisor } from '#storage/block/publications/export-supervisor';
import { ProtectionScheduler } from '#storage/block/schedules/protection-scheduler';
import { SnapshotSessionManager } from '#storage/block/sessions/session-manager';
import type { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { HiddenSnapshotReaper } from '#storage/block/snapshots/hidden-snapshot-reaper';
import { ImageReleaser } from '#storage/block/snapshots/image-releaser';
import { RecycleBin } from '#storage/block/volumes/recycle-bin';
import { BackendEnds } from '#storage/drain/backend-ends';
import { TenantDrain } from '#storage/drain/tenant-drain';
import { AccessKeyScheduler } from '#storage/object/accesses/key-scheduler';
import { BucketMeter } from '#storage/object/buckets/bucket-meter';
import { ObjectDriftCheck } from '#storage/object/object-drift';
import type { BackendDirectory } from '#storage/shared/backend-directory';
import { forgetGone } from '#storage/shared/forget-gone';
import { UsageSampler } from '#storage/usage/usage-sampler';
import { VolumeIoSampler } from '#storage/usage/volume-io-sampler';
import { AuditRetention } from '#tenancy/audit-log/audit-retention';
import { forgetAnswers } from '#tenancy/idempotency-keys';
import { TallyCheck } from '#tenancy/quotas/tally-check';

export const TASKS = key<PeriodicTask[]>('periodic tasks');

interface TaskParts {
  config: Config;
  database: Database;
  secrets: SecretBox;
  objects: BackendDirectory<ObjectBackend>;
  blocks: BackendDirectory<BlockStore>;
  sessions: SnapshotSessionService;
  alerts: AlertWatch;
  sender: Sender;
  /** Whose pools it works on; absent: all. */
  host?: StorageHost;
  /** Ends the process. */
  refuse?(reason: string): void;
}

export const LEASES = key<ExportLeaseKeeper>('leases of exports');

/** Which host exports a pool of a cluster: goes on until the worker's last operation has ended. */
export function exportLeases({
  database,
  blocks,
  host,
}: Required<Pick<TaskParts, 'database' | 'blocks' | 'host'>>): ExportLeaseKeeper {
  const supervisor = new ExportSupervisor(database, blocks, undefined, host.name);
  return new ExportLeaseKeeper(database, blocks, kindNamed, host, {
    serve: ({ tenantId, backendId, pool }, how) => supervisor.serve(tenantId, backendId, pool, how),
  });
}

const kindNamed = (kind: string) => blockBackendKind(blockBackendKinds(), kind);

/** What workers do without being asked; those of the engine itself are in libs/operations/src/workers/worker.ts. In any order. */
export function periodicTasks(parts: TaskParts): PeriodicTask[] {
  const { config, database, secrets, objects, blocks, sessions, alerts, sender, host, refuse } = parts;
  const kindOf = kindNamed;
  return [
    forgetGone(database),
    new AuditRetention(database, config.TRIVET_AUDIT_LOG_DAYS),
    forgetAnswers(database),
    new TallyCheck(database),
    new TenantDrain(database, new BackendEnds(database, blocks, objects)),
    new ObjectDriftCheck(database, objects, secrets, config.TRIVET_AUDIT_MS),
    new AccessKeyScheduler(database),
    new BucketMeter(database, objects),
    new StoreMonitor(database, objects),
    new PoolMonitor(database, blocks, kindOf, host, refuse),
    new PoolSampler(database),
    new UsageSampler(database, config.TRIVET_USAGE_DAYS),
    new VolumeIoSampler(database, blocks, config.TRIVET_USAGE_DAYS, host?.name),
    new ExportSupervisor(database, blocks, undefined, host?.name),
    new BlockDriftCheck(database, blocks, config.TRIVET_BLOCK_AUDIT_MS, host?.name),
    new RecycleBin(database, blocks, kindOf, undefined, host?.name),
    new HiddenSnapshotReaper(database),
    new ImageReleaser(database),
    new ProtectionScheduler(database),
    new IndexScheduler(database),
    new IndexRetention(database, { retentionMs: config.TRIVET_INDEX_RETENTION_MS }),
    new SnapshotSessionManager(database, sessions),
    alerts,
    new AlertDelivery(sender),
  ];
}
