import { Module } from '@nestjs/common';
import { blockBackendKinds, objectBackendKinds } from '#backends/registry';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { provide } from '#platform/process/providers';
import { BackendRegistrations } from '#storage/backends/backend-registrations';
import {
  APPLIANCE_ID,
  BackendDirectoriesModule,
  BLOCK_BACKENDS,
  OBJECT_BACKENDS,
} from '#storage/shared/backend-directories.module';

@Module({
  imports: [BackendDirectoriesModule],
  providers: [
    provide(
      BackendRegistrations,
      [Database, SecretBox, APPLIANCE_ID, OBJECT_BACKENDS, BLOCK_BACKENDS],
      (database, secrets, applianceId, objects, blocks) => {
        const kinds = { objectKinds: objectBackendKinds(), blockKinds: blockBackendKinds() };
        return new BackendRegistrations({ database, secrets, applianceId, objects, blocks, ...kinds });
      },
    ),
  ],
  exports: [BackendRegistrations],
})
export class BackendRegistrationsModule {}
