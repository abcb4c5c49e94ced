import {
  BackendRegistry,
  blockBackendKind,
  blockBackendKinds,
  objectBackendKind,
  objectBackendKinds,
} from '#backends/registry';
import { OpenStreams } from '#cbt/open-streams';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { BullDoorbell, NotifyDoorbell } from '#operations/doorbell';
import { Operations } from '#operations/operations';
import type { ProcessContext } from '#platform/boot';
import type { Config } from '#platform/config';
import type { Database } from '#platform/database';
import { oidcSettings } from '#platform/oidc-settings';
import type { SecretBox } from '#platform/secrets';
import { BackendDirectory } from '#storage/backend-directory';
import { BlockStorageService } from '#storage/block-storage-service';
import { SnapshotSessionService } from '#storage/sessions/snapshot-session-service';
import { ObjectStorageService } from '#storage/storage';
import { AdminLogins } from '#tenancy/admin-logins';
import { readApplianceId } from '#tenancy/appliance';
import { IdentityProvider } from '#tenancy/identity-provider';
import { Passwords } from '#tenancy/passwords';
import { ProviderLogins } from '#tenancy/provider-logins';
import { StreamQuotas } from '#tenancy/quotas';
import { Sessions } from '#tenancy/sessions';
import { ShutTenants } from '#tenancy/shut-tenants';
import { SocketDoors } from './socket-doors.js';

export const REQUIRED = [
  'TRIVET_DATABASE_URL',
  'TRIVET_DATABASE_ENGINE_URL',
  'TRIVET_REDIS_URL',
  'TRIVET_KEK_FILE',
] as const satisfies (keyof Config)[];

export type GatewayConfig = Config & { [K in (typeof REQUIRED)[number]]-?: NonNullable<Config[K]> };

/** What stands behind the doors: the domain, the engine's accepting half, logins. Tests open rooms over the same. */
export type GatewayParts = Awaited<ReturnType<typeof gatewayParts>>;

export async function gatewayParts(
  { config, shutdown }: Pick<ProcessContext<GatewayConfig>, 'config' | 'shutdown'>,
  database: Database,
  secrets: SecretBox,
) {
  const oidc = oidcSettings(config);
  const objectKinds = objectBackendKinds({ fakeFile: config.TRIVET_FAKE_BACKEND_FILE });
  const blockKinds = blockBackendKinds({ fakeFile: config.TRIVET_FAKE_BLOCK_FILE });
  const isBlockKind = (kind: string): boolean => blockKinds.some(known => known.kind === kind);
  const doorbell =
    config.TRIVET_REDIS_URL === 'none'
      ? new NotifyDoorbell(database)
      : new BullDoorbell(config.TRIVET_REDIS_URL, config.TRIVET_REDIS_PREFIX);
  const operations = new Operations(database, doorbell, config.TRIVET_TENANT_CAP);
  shutdown.add('operations', () => operations.close());
  const storage = new ObjectStorageService({
    database,
    operations,
    secrets,
    kindOf: endpoint => objectBackendKind(objectKinds, endpoint.backendKind),
    waitMs: config.TRIVET_COSI_WAIT_MS,
  });
  const blockStorage = new BlockStorageService({
    database,
    operations,
    secrets,
    kindOf: caller => blockBackendKind(blockKinds, caller.backendKind),
    targetIds: config.TRIVET_TARGET_IDS,
    scsiIdentity: config.TRIVET_SCSI_IDENTITY,
  });
  // One line for all legs: together they leave file work its threads.
  const passwords = new Passwords();
  const shut = new ShutTenants(database);
  shut.start();
  shutdown.add('shut-tenants', () => shut.stop());
  const logins = new AdminLogins(database, passwords, shut);
  const sessions = new Sessions({ database, ttlMs: config.TRIVET_CSP_TOKEN_TTL_MS, isBlockKind, passwords, shut });
  const applianceId = await readApplianceId(database);
  const blocks = new BackendDirectory(database, new BackendRegistry(blockKinds, applianceId), secrets);
  // For connection tests only: what callers ask goes to a worker.
  const objects = new BackendDirectory(database, new BackendRegistry(objectKinds, applianceId), secrets);
  shutdown.add('backends', async () => {
    blocks.close();
    objects.close();
  });
  const snapshotSessions = new SnapshotSessionService({
    database,
    secrets,
    driverOf: kind => (isBlockKind(kind) ? config.TRIVET_CSI_DRIVER_NAME : undefined),
    ttlMs: config.TRIVET_SNAPSHOT_SESSION_TTL_MS,
    shut,
  });
  const streamQuotas = new StreamQuotas(database);
  const streams = new OpenStreams(undefined, tenantId => {
    shut.require(tenantId);
    return streamQuotas.of(tenantId);
  });
  shut.onShut(tenantId => streams.endTenant(tenantId));
  return {
    config,
    database,
    secrets,
    objectKinds,
    blockKinds,
    operations,
    objects,
    applianceId,
    doors: new SocketDoors(config),
    storage,
    blockStorage,
    sessions,
    blocks,
    snapshotSessions,
    changes: new ChangedBlocksService(database, blocks),
    streams,
    shut,
    passwords,
    logins,
    oidc,
    provider: oidc && new ProviderLogins({ database, secrets, logins, provider: new IdentityProvider(oidc) }),
  };
}
