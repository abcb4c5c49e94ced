import type { Merge } from '#changes/span-path';
import { defineOperation } from '#operations/define-operation';
import { indexSlot } from '#storage/snapshots/index-slot';

export interface IndexChangesRequest {
  volumeId: string;
  resources: readonly [volumeId: string];
}

export const indexChanges = defineOperation<IndexChangesRequest>('changes.index', {
  resourceKind: 'snapshot',
  class: 'index',
  slots: (_, { volumeId }) => [indexSlot(volumeId)],
});

/** A span over several steps, named by its cuts; or a deleted snapshot leaves the chain. */
export type MergeChangesRequest = (Merge & { leaves?: undefined }) | { leaves: string };

export const mergeChanges = defineOperation<MergeChangesRequest>('changes.merge', {
  resourceKind: 'volume',
  class: 'index',
  slots: volumeId => [indexSlot(volumeId)],
});
