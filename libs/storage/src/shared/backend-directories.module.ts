import { Module } from '@nestjs/common';
import type { BlockStore } from '#backends/block-backend';
import { BackendRegistry, blockBackendKinds, objectBackendKinds } from '#backends/registry';
import { SecretBox } from '#platform/crypto/secrets';
import { Database } from '#platform/database/database';
import { key, provide } from '#platform/process/providers';
import { Shutdown } from '#platform/process/shutdown';
import { BackendDirectory } from '#storage/shared/backend-directory';
import { readApplianceId } from '#tenancy/tenants/appliance';

export const APPLIANCE_ID = key<string>('id of the appliance');
export const OBJECT_BACKENDS = key<BackendDirectory>('object backends');
export const BLOCK_BACKENDS = key<BackendDirectory<BlockStore>>('block backends');

const NEEDS = [Database, SecretBox, Shutdown, APPLIANCE_ID] as const;

/** Opened backends. In a gateway for connection tests and looks at images only: what callers ask goes to a worker. */
@Module({
  providers: [
    provide(APPLIANCE_ID, [Database], readApplianceId),
    provide(OBJECT_BACKENDS, NEEDS, (database, secrets, shutdown, applianceId) => {
      const backends = new BackendDirectory(database, new BackendRegistry(objectBackendKinds(), applianceId), secrets);
      shutdown.add('object-backends', () => backends.close());
      return backends;
    }),
    provide(BLOCK_BACKENDS, NEEDS, (database, secrets, shutdown, applianceId) => {
      const backends = new BackendDirectory(database, new BackendRegistry(blockBackendKinds(), applianceId), secrets);
      shutdown.add('block-backends', () => backends.close());
      return backends;
    }),
  ],
  exports: [APPLIANCE_ID, OBJECT_BACKENDS, BLOCK_BACKENDS],
})
export class BackendDirectoriesModule {}
