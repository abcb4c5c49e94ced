import { Module } from '@nestjs/common';
import { blockBackendKinds } from '#backends/registry';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { type AppConfig, CONFIG } from '#platform/process/platform.module';
import { SnapshotSessionService } from '#storage/block/sessions/snapshot-session-service';
import { SuspendedTenants } from '#tenancy/tenants/suspended-tenants';

/** Snapshot sessions: a gateway opens them, and knows whose doors are shut; a worker ends them. */
@Module({
  providers: [
    {
      provide: SnapshotSessionService,
      inject: [CONFIG, Database, SecretBox, { token: SuspendedTenants, optional: true }],
      useFactory: (config: AppConfig, database: Database, secrets: SecretBox, suspended?: SuspendedTenants) =>
        new SnapshotSessionService({
          database,
          secrets,
          driverOf: kind =>
            blockBackendKinds().some(known => known.kind === kind) ? config.TRIVET_CSI_DRIVER_NAME : undefined,
          ttlMs: config.TRIVET_SNAPSHOT_SESSION_TTL_MS,
          suspended,
        }),
    },
  ],
  exports: [SnapshotSessionService],
})
export class BlockSessionsModule {}
