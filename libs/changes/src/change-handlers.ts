import { indexHandler } from '#changes/index-handler';
import { mergeHandler } from '#changes/merge-handler';
import type { Handler } from '#operations/handler';
import type { Database } from '#platform/database';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

/** The worker's half of the change index: one handler a kind of operation. */
export const changeHandlers = (database: Database, blocks: BlockDirectory): Handler[] => [
  indexHandler(blocks),
  mergeHandler(database),
];
