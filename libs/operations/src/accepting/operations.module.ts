import { Module } from '@nestjs/common';
import { Operations } from '#operations/accepting/operations';
import { BullDoorbell, NotifyDoorbell } from '#operations/queue/doorbell';
import { Database } from '#platform/database/database';
import { CONFIG } from '#platform/process/platform.module';
import { provide } from '#platform/process/providers';
import { Shutdown } from '#platform/process/shutdown';

/** The accepting half of the engine: whoever changes something asks it for an operation. */
@Module({
  providers: [
    provide(Operations, [CONFIG, Database, Shutdown], (config, database, shutdown) => {
      const doorbell =
        config.TRIVET_REDIS_URL === 'none'
          ? new NotifyDoorbell(database)
          : new BullDoorbell(config.TRIVET_REDIS_URL, config.TRIVET_REDIS_PREFIX);
      const operations = new Operations(database, doorbell, config.TRIVET_TENANT_CAP);
      shutdown.add('operations', () => operations.close());
      return operations;
    }),
  ],
  exports: [Operations],
})
export class OperationsModule {}
