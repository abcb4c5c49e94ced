import { Module } from '@nestjs/common';
import { blockBackendKind, blockBackendKinds } from '#backends/registry';
import { Operations } from '#operations/accepting/operations';
import { OperationsModule } from '#operations/accepting/operations.module';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { key, provide } from '#platform/process/providers';
import type { BlockStorage } from '#storage/block/block-storage';
import { blockStorage } from '#storage/block/block-storage-service';
import { BackendDirectoriesModule, BLOCK_BACKENDS } from '#storage/shared/backend-directories.module';
import { type BackendChoice, readBackends } from '#tenancy/logins/backend-choice';

export const BLOCK_STORAGE = key<BlockStorage>('BlockStorage');
/** Where a tenant may have block volumes, the oldest backend first. */
export type BlockChoices = (tenantId: string) => Promise<BackendChoice[]>;
export const BLOCK_CHOICES = key<BlockChoices>('backends of block volumes');

/** Volumes, snapshots, groups, hosts and publications, as protocol libraries ask for them. */
@Module({
  imports: [OperationsModule, BackendDirectoriesModule],
  providers: [
    provide(
      BLOCK_STORAGE,
      [CONFIG, Database, Operations, SecretBox, BLOCK_BACKENDS],
      (config, database, operations, secrets, blocks) =>
        blockStorage({
          database,
          operations,
          secrets,
          blocks,
          kindOf: caller => blockBackendKind(blockBackendKinds(), caller.backendKind),
          targetIds: config.TRIVET_TARGET_IDS,
          scsiIdentity: config.TRIVET_SCSI_IDENTITY,
        }),
    ),
    provide(BLOCK_CHOICES, [Database], database => async (tenantId: string) => {
      const backends = await database.withTenant(tenantId, tx => readBackends(tx, tenantId));
      return backends.filter(({ kind }) => blockBackendKinds().some(known => known.kind === kind));
    }),
  ],
  exports: [BLOCK_STORAGE, BLOCK_CHOICES],
})
export class BlockModule {}
