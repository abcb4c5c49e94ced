import { Module } from '@nestjs/common';
import { objectBackendKind, objectBackendKinds } from '#backends/registry';
import { Operations } from '#operations/accepting/operations';
import { OperationsModule } from '#operations/accepting/operations.module';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { key, provide } from '#platform/process/providers';
import type { ObjectStorage } from '#storage/object/object-storage';
import { objectStorage } from '#storage/object/object-storage-service';

export const OBJECT_STORAGE = key<ObjectStorage>('ObjectStorage');

/** Buckets and accesses, as protocol libraries ask for them. */
@Module({
  imports: [OperationsModule],
  providers: [
    provide(OBJECT_STORAGE, [Database, Operations, SecretBox], (database, operations, secrets) => {
      const kindOf = (kind: string) => objectBackendKind(objectBackendKinds(), kind);
      return objectStorage({ database, operations, secrets, kindOf });
    }),
  ],
  exports: [OBJECT_STORAGE],
})
export class ObjectModule {}
