import { Module } from '@nestjs/common';
import { ChangedBlocksService } from '#changes/changed-blocks-service';
import { Database } from '#platform/database/database';
import { provideClass } from '#platform/process/providers';
import { BackendDirectoriesModule, BLOCK_BACKENDS } from '#storage/shared/backend-directories.module';

@Module({
  imports: [BackendDirectoriesModule],
  providers: [provideClass(ChangedBlocksService, Database, BLOCK_BACKENDS)],
  exports: [ChangedBlocksService],
})
export class ChangedBlocksModule {}
