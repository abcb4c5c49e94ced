import { Module } from '@nestjs/common';
import { OpenStreams } from '#cbt/open-streams';
import { StreamsModule } from '#cbt/streams.module';
import { ChangedBlocksModule } from '#changes/changed-blocks.module';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { Database } from '#platform/database/database';
import { CONTEXT } from '#platform/process/platform.module';
import { key, provide } from '#platform/process/providers';
import { BlockSessionsModule } from '#storage/block/sessions/block-sessions.module';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { CSI_ENDPOINT_NAME } from '#tenancy/endpoints/endpoint-names';
import { DEFAULT_TENANT } from '#tenancy/setup/setup';
import { findDoor, isTenantActive } from '#tenancy/tenants/tenant-state';
import { type CbtListeners, openCbtListeners } from './cbt-listeners.js';
import { GatewayTasks } from './gateway-tasks.js';
import { ListenersModule } from './listeners.module.js';

export const CBT_LISTENERS = key<CbtListeners>('CbtListeners');

@Module({
  imports: [BlockSessionsModule, ChangedBlocksModule, ListenersModule, StreamsModule],
  providers: [
    provide(
      CBT_LISTENERS,
      [CONTEXT, Database, GatewayTasks, ChangedBlocksService, SnapshotSessionService, OpenStreams],
      (context, database, tasks, changes, sessions, streams) =>
        openCbtListeners(context, {
          changes,
          sessions,
          streams,
          tasks,
          tenant: () => findDoor(database, DEFAULT_TENANT, CSI_ENDPOINT_NAME),
          isActive: id => isTenantActive(database, id),
        }),
    ),
  ],
  exports: [CBT_LISTENERS],
})
export class CbtListenersModule {}
