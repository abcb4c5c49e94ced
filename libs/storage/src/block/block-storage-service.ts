import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockStorage } from '#storage/block/block-storage';
import { SnapshotGroups } from '#storage/block/groups/snapshot-groups';
import { VolumeGroups } from '#storage/block/groups/volume-groups';
import { Hosts } from '#storage/block/hosts/hosts';
import { Publications } from '#storage/block/publications/publications';
import { replayAndWait } from '#storage/block/publications/replay';
import { Snapshots } from '#storage/block/snapshots/snapshots';
import { restoreFromBin } from '#storage/block/volumes/recycle-bin';
import { Volumes } from '#storage/block/volumes/volumes';

/** The gateway's half of the block side: what its protocol libraries call. */
export const blockStorage = (parts: BlockDependencies): BlockStorage => ({
  hosts: new Hosts(parts, (caller, hostId) => replayAndWait(parts, caller, hostId)),
  volumes: new Volumes(parts),
  publications: new Publications(parts),
  snapshots: new Snapshots(parts),
  volumeGroups: new VolumeGroups(parts),
  snapshotGroups: new SnapshotGroups(parts),
  recycleBin: {
    restore: ({ tenantId, observer }, volumeId, name) =>
      restoreFromBin(parts.database, tenantId, volumeId, { name, observer }),
  },
});
