import type { Slot } from '#operations/accept';
import { defineOperation } from '#operations/define-operation';
import { cutSlots, SNAPSHOT_SLOT } from '#storage/snapshots/snapshot-slots';

const ownGroup = (groupId: string): Slot => ({ resource: groupId, slot: 'lifecycle', own: true });

export interface CreateSnapshotGroupRequest {
  /** The volumes. */
  resources: readonly string[];
}

/** Whoever began to write to one member after its cut and then to another one before its cut would tear the group. */
export const createSnapshotGroup = defineOperation<CreateSnapshotGroupRequest>('snapshot_group.create', {
  resourceKind: 'snapshot_group',
  class: 'fast',
  slots: (id, { resources }) => [ownGroup(id), ...resources.flatMap(volumeId => cutSlots(volumeId, { still: true }))],
});

export interface DeleteSnapshotGroupRequest {
  /** Its snapshots. */
  resources: readonly string[];
}

export const deleteSnapshotGroup = defineOperation<DeleteSnapshotGroupRequest>('snapshot_group.delete', {
  resourceKind: 'snapshot_group',
  class: 'destroy',
  slots: (id, { resources }) => [
    ownGroup(id),
    ...resources.map(resource => ({ resource, slot: SNAPSHOT_SLOT, own: false })),
  ],
  negates: () => [createSnapshotGroup],
});
