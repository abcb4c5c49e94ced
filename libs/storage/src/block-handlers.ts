import type { Handler } from '#operations/handler';
import type { SecretBox } from '#platform/secrets';
import { createSnapshotGroupHandler, deleteSnapshotGroupHandler } from '#storage/groups/snapshot-group-handlers';
import { publicationHandlers } from '#storage/publications/publication-handlers';
import { releaseImageHandler } from '#storage/snapshots/release-image';
import { createSnapshotHandler, deleteSnapshotHandler } from '#storage/snapshots/snapshot-handlers';
import {
  type BlockDirectory,
  createVolumeHandler,
  deleteVolumeHandler,
  expandVolumeHandler,
} from '#storage/volumes/volume-handlers';

/** The worker's half of the block leg: one handler a kind of operation. */
export function blockHandlers(blocks: BlockDirectory, secrets: SecretBox, options: { recycleMs: number }): Handler[] {
  return [
    createVolumeHandler('volume.create', blocks) as Handler,
    createVolumeHandler('volume.clone', blocks) as Handler,
    expandVolumeHandler(blocks) as Handler,
    deleteVolumeHandler(blocks, options.recycleMs) as Handler,
    createSnapshotHandler(blocks) as Handler,
    deleteSnapshotHandler(blocks) as Handler,
    releaseImageHandler(blocks) as Handler,
    createSnapshotGroupHandler(blocks) as Handler,
    deleteSnapshotGroupHandler(blocks) as Handler,
    ...publicationHandlers(blocks, secrets),
  ];
}
