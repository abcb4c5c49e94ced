import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import {
  applyTarget,
  succeedTarget,
  type TargetNeeds,
  type TargetRequest,
} from '#storage/block/publications/apply-target';
import { readTarget, type TargetWork } from '#storage/block/publications/target-work';
import { REPLAY, VOLUME_SLOTS } from '#storage/block/volumes/volume-slots';

/** The volume's target as Postgres says, once more. */
export const replayTarget = defineOperation(REPLAY.kind, {
  resourceKind: 'volume',
  class: 'fast',
  slots: (volumeId, _: TargetRequest) => [{ resource: volumeId, slot: VOLUME_SLOTS.exports, own: true }],
  carriedOut: (needs: TargetNeeds): Handling<TargetWork, TargetRequest> => ({
    begin: (tx, operation) => readTarget(tx, needs.secrets, operation, operation.request.volumeId),
    steps: [applyTarget(needs, { publishes: false })],
    succeed: succeedTarget,
    giveUp: {
      leaves: 'nothing has changed; as long as the target is not as it should be, it is applied again by itself',
      write: () => {},
    },
  }),
});
