import { Module } from '@nestjs/common';
import { CHANGE_OPERATIONS } from '#changes/change-operations';
import { handlersOf } from '#operations/definitions/define-operation';
import type { Handler } from '#operations/definitions/handler';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { key, provide } from '#platform/process/providers';
import { BLOCK_OPERATIONS } from '#storage/block/block-operations';
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
      (config, database, secrets, backends, blocks) =>
        handlersOf([...OBJECT_OPERATIONS, ...BLOCK_OPERATIONS, ...CHANGE_OPERATIONS], {
          database,
          secrets,
          backends,
          blocks,
          recycleMs: config.TRIVET_RECYCLE_MS,
        }),
    ),
  ],
  exports: [HANDLERS],
})
export class OperationHandlersModule {}
