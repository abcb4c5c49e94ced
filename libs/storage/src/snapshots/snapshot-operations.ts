import { defineOperation } from '#operations/define-operation';
import { indexSlot } from '#storage/snapshots/index-slot';
import { cutSlots, ownSnapshot } from '#storage/snapshots/snapshot-slots';

export interface CreateSnapshotRequest {
  volumeId: string;
  /** Its pool cannot share blocks: nobody may begin to write meanwhile. */
  copying: boolean;
  /** Although writers will stall for longer than is good for them. */
  force: boolean;
  resources: readonly [volumeId: string];
}

export const createSnapshot = defineOperation<CreateSnapshotRequest>('snapshot.create', {
  resourceKind: 'snapshot',
  class: 'fast',
  slots: (id, { volumeId, copying }) => [ownSnapshot(id), ...cutSlots(volumeId, { still: copying })],
});

export const deleteSnapshot = defineOperation('snapshot.delete', {
  resourceKind: 'snapshot',
  class: 'destroy',
  slots: id => [ownSnapshot(id)],
  negates: () => [createSnapshot],
});

export interface ReleaseSnapshotRequest {
  /** Also the image that the next step of the change index would begin with. */
  anchor: boolean;
  resources: readonly [volumeId: string];
}

/** The image of one that was deleted before. */
export const releaseSnapshot = defineOperation<ReleaseSnapshotRequest>('snapshot.release', {
  resourceKind: 'snapshot',
  class: 'destroy',
  slots: (id, { resources: [volumeId] }) => [ownSnapshot(id), indexSlot(volumeId)],
});
