import type { Handler } from '#operations/handler';
import type { SecretBox } from '#platform/secrets';
import { createSnapshotGroupHandler, deleteSnapshotGroupHandler } from '#storage/groups/snapshot-group-handlers';
import { publicationHandlers } from '#storage/publications/publication-handlers';
import { releaseImageHandler } from '#storage/snapshots/release-image';
import { createSnapshotHandler, deleteSnapshotHandler } from '#storage/snapshots/snapshot-handlers';
import {
  type BlockDirectory,
  createVolumeHandlers,
  deleteVolumeHandler,
  expandVolumeHandler,
} from '#storage/volumes/volume-handlers';

/** The worker's half of the block leg: one handler a kind of operation. */
export function blockHandlers(blocks: BlockDirectory, secrets: SecretBox, options: { recycleMs: number }): Handler[] {
  return [
    ...createVolumeHandlers(blocks),
    expandVolumeHandler(blocks),
    deleteVolumeHandler(blocks, options.recycleMs),
    createSnapshotHandler(blocks),
    deleteSnapshotHandler(blocks),
    releaseImageHandler(blocks),
    createSnapshotGroupHandler(blocks),
    deleteSnapshotGroupHandler(blocks),
    ...publicationHandlers(blocks, secrets),
  ];
}
