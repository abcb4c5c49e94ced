import type { ImageRef } from '#backends/block-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { createSnapshotGroup, ownGroup } from '#storage/block/groups/create-snapshot-group';
import { GROUP_GONE, GROUP_NOT_GONE } from '#storage/block/groups/snapshot-group-store';
import { GIVEN_UP_SNAPSHOTS, removeImages, unlinkable } from '#storage/block/snapshots/snapshot-images';
import { SNAPSHOT_SLOT } from '#storage/block/snapshots/snapshot-slots';
import { GONE, NOT_GONE, resourceOf } from '#storage/block/snapshots/snapshot-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface DeleteSnapshotGroupRequest {
  /** Its snapshots. */
  resources: readonly string[];
}

/** It cannot fail: what cannot be removed waits for a person. */
export const deleteSnapshotGroup = defineOperation('snapshot_group.delete', {
  resourceKind: 'snapshot_group',
  class: 'destroy',
  slots: (id, { resources }: DeleteSnapshotGroupRequest) => [
    ownGroup(id),
    ...resources.map(resource => ({ resource, slot: SNAPSHOT_SLOT, own: false })),
  ],
  negates: () => [createSnapshotGroup],
  carriedOut: ({ blocks }: BlockNeeds): Handling<ImageRef[], DeleteSnapshotGroupRequest> => ({
    begin: unlinkable,
    steps: [removeImages(blocks, images => images)],
    succeed(writer, operation) {
      writer.write(GONE(operation), resourceOf(operation));
      writer.write(GROUP_GONE, resourceOf(operation));
      return undefined;
    },
    giveUp: {
      leaves: GIVEN_UP_SNAPSHOTS,
      write(writer, operation) {
        writer.write(NOT_GONE(operation), resourceOf(operation));
        writer.write(GROUP_NOT_GONE, resourceOf(operation));
      },
    },
  }),
});
