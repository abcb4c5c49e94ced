import { Module } from '@nestjs/common';
import { blockBackendKind, blockBackendKinds } from '#backends/registry';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { handlersOf } from '#operations/definitions/define-operation';
import type { Handler } from '#operations/definitions/handler';
import { OperationKinds } from '#operations/definitions/operation-kinds';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { key, provide } from '#platform/process/providers';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
import { BULK_OPERATIONS } from '#storage/bulk/run-bulk';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import { BackendDirectoriesModule, BLOCK_BACKENDS, OBJECT_BACKENDS } from '#storage/shared/backend-directories.module';

export const HANDLERS = key<Handler[]>('handlers of operations');

/**
 * Every kind of operation, carried out. In a gateway they only say what their steps are called, and what becomes of a resource
 * without asking a backend.
 */
@Module({
  imports: [BackendDirectoriesModule],
  providers: [
    provide(
      HANDLERS,
      [CONFIG, Database, SecretBox, OBJECT_BACKENDS, BLOCK_BACKENDS],
      (config, database, secrets, backends, blocks) => {
        const handlers: Handler[] = handlersOf(
          [...OBJECT_OPERATIONS, ...BLOCK_OPERATIONS, ...CHANGE_OPERATIONS, ...BULK_OPERATIONS],
          {
            database,
            secrets,
            backends,
            blocks,
            recycleMs: config.TRIVET_RECYCLE_MS,
            block: {
              blocks,
              kindOf: ({ backendKind }) => blockBackendKind(blockBackendKinds(), backendKind),
              targetIds: config.TRIVET_TARGET_IDS,
              scsiIdentity: config.TRIVET_SCSI_IDENTITY,
            },
            cap: config.TRIVET_TENANT_CAP,
            kinds: () => new OperationKinds(handlers),
          },
        );
        return handlers;
      },
    ),
  ],
  exports: [HANDLERS],
})
export class OperationHandlersModule {}
