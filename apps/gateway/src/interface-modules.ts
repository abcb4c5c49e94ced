import type { DynamicModule } from '@nestjs/common';
import { AdminModule } from '#admin/admin.module';
import { blockBackendKinds, objectBackendKinds } from '#backends/registry';
import { ChangesModule } from '#cbt/changes.module';
import { OpenStreams } from '#cbt/open-streams';
import { SnapshotSessionsModule } from '#cbt/sessions.module';
import { StreamsModule } from '#cbt/streams.module';
import { ChangedBlocksModule } from '#changes/changed-blocks.module';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { CosiModule } from '#cosi/cosi.module';
import { CspModule } from '#csp/csp.module';
import { createLogger } from '#platform/logging/log';
import { type AppConfig, type AppContext, CONFIG, PlatformModule } from '#platform/process/platform.module';
import { BLOCK_STORAGE, BlockModule } from '#storage/block/block.module';
import type { BlockStorage } from '#storage/block/block-storage';
import { BlockSessionsModule } from '#storage/block/sessions/block-sessions.module';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { OBJECT_STORAGE, ObjectModule } from '#storage/object/object.module';
import type { ObjectStorage } from '#storage/object/object-storage';
import { Sessions } from '#tenancy/logins/sessions';
import { TenancyModule } from '#tenancy/tenancy.module';
import type { CbtListeners } from './cbt-listeners.js';
import { CBT_LISTENERS, CbtListenersModule } from './cbt-listeners.module.js';
import { ListenersModule } from './listeners.module.js';
import { metadataService } from './metadata-service.js';

/** The admin API and what it stands on. */
export const adminModules = (context: AppContext): DynamicModule[] => [
  PlatformModule.of(context),
  TenancyModule.of({
    isBlockKind: kind => blockBackendKinds().some(known => known.kind === kind),
    isObjectKind: kind => objectBackendKinds().some(known => known.kind === kind),
  }),
  AdminModule.register({ imports: [ListenersModule] }),
];

/** All that a gateway serves. */
export const interfaceModules = (context: AppContext): DynamicModule[] => [
  ...adminModules(context),
  ...changedBlocks(context.config),
  CosiModule.register({
    imports: [ObjectModule],
    inject: [OBJECT_STORAGE],
    useFactory: (storage: ObjectStorage) => storage,
  }),
  CspModule.register({
    contextPath: context.config.TRIVET_CSP_CONTEXT_PATH,
    imports: [BlockModule],
    inject: [BLOCK_STORAGE, Sessions],
    useFactory: (storage: BlockStorage, sessions: Sessions) => ({ storage, sessions, log: createLogger('csp') }),
  }),
];

/** Snapshot sessions only where readers find the door that they are for. */
function changedBlocks({ TRIVET_CBT_LISTEN, TRIVET_CBT_STALL_MS }: AppConfig): DynamicModule[] {
  const changes = ChangesModule.register({
    imports: [BlockSessionsModule, CbtListenersModule, ChangedBlocksModule, StreamsModule],
    inject: [ChangedBlocksService, OpenStreams, Sessions, SnapshotSessionService],
    useFactory: (
      changes: ChangedBlocksService,
      streams: OpenStreams,
      logins: Sessions,
      sessions: SnapshotSessionService,
    ) => ({ changes, streams, logins, sessions, logger: createLogger('cbt'), stallMs: TRIVET_CBT_STALL_MS }),
  });
  if (TRIVET_CBT_LISTEN === 'none') return [changes];
  const sessions = SnapshotSessionsModule.register({
    imports: [BlockSessionsModule, CbtListenersModule],
    inject: [CONFIG, CBT_LISTENERS, Sessions, SnapshotSessionService],
    useFactory: (config: AppConfig, { tls }: CbtListeners, logins: Sessions, sessions: SnapshotSessionService) => ({
      sessions,
      logins,
      service: metadataService(config, tls!),
    }),
  });
  return [changes, sessions];
}
