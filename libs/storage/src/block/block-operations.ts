import { createSnapshotGroup } from '#storage/block/groups/create-snapshot-group';
import { deleteSnapshotGroup } from '#storage/block/groups/delete-snapshot-group';
import { publishVolume } from '#storage/block/publications/publish-volume';
import { replayTarget } from '#storage/block/publications/replay-target';
import { unpublishVolume } from '#storage/block/publications/unpublish-volume';
import { createSnapshot } from '#storage/block/snapshots/create-snapshot';
import { deleteSnapshot } from '#storage/block/snapshots/delete-snapshot';
import { releaseSnapshot } from '#storage/block/snapshots/release-snapshot';
import { cloneVolume } from '#storage/block/volumes/clone-volume';
import { createVolume } from '#storage/block/volumes/create-volume';
import { deleteVolume } from '#storage/block/volumes/delete-volume';
import { expandVolume } from '#storage/block/volumes/expand-volume';

/** What is done about block volumes. */
export const BLOCK_OPERATIONS = [
  createVolume,
  cloneVolume,
  expandVolume,
  deleteVolume,
  createSnapshot,
  deleteSnapshot,
  releaseSnapshot,
  createSnapshotGroup,
  deleteSnapshotGroup,
  publishVolume,
  unpublishVolume,
  replayTarget,
] as const;
