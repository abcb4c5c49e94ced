import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling, Step } from '#operations/definitions/handler';
import { StorageError } from '#platform/errors';
import { cutSeconds, volumeExtents } from '#platform/metrics/metrics';
import {
  EXTENT_LIMIT,
  PAUSE_LIMIT_MS,
  requireShortPause,
  requireShortStall,
} from '#storage/block/snapshots/cut-limits';
import { commitImage, removeImages } from '#storage/block/snapshots/snapshot-images';
import { cutSlots, ownSnapshot } from '#storage/block/snapshots/snapshot-slots';
import { CUT_AT, type Cut, GONE, readCuts, resourceOf, stageOf, TAKEN } from '#storage/block/snapshots/snapshot-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface CreateSnapshotRequest {
  volumeId: string;
  /** Its pool cannot share blocks: nobody may begin to write meanwhile. */
  copying: boolean;
  /** Although writers will stall for longer than is good for them. */
  force: boolean;
  resources: readonly [volumeId: string];
}

/**
 * A snapshot is a copy of the volume's image that nobody may change any more. It is made under a temporary name and gets
 * its own in one step, so an image of that name is whole, and a repeat after a crash goes on from it: whoever finds it
 * also finds the time of the cut, which is committed in between.
 */
export const createSnapshot = defineOperation('snapshot.create', {
  resourceKind: 'snapshot',
  class: 'fast',
  slots: (id, { volumeId, copying }: CreateSnapshotRequest) => [
    ownSnapshot(id),
    ...cutSlots(volumeId, { still: copying }),
  ],
  carriedOut: takeSnapshot,
});

function takeSnapshot({ blocks }: BlockNeeds): Handling<Cut, CreateSnapshotRequest> {
  const predict: Step<Cut, CreateSnapshotRequest> = {
    name: 'predict',
    calls: ['inspectImage', 'discardStages', 'predictCut'],
    async run({ image, source, volumeName, published }, { operation, progress, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const found = await call('inspectImage', signal => volumes.inspectImage(image, signal));
      progress.made = found.state === 'present';
      await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
      if (progress.made) return undefined;
      const prediction = await call('predictCut', signal => volumes.predictCut(source, EXTENT_LIMIT, signal));
      const { copying, force } = operation.request;
      const resource = `volume ${volumeName}`;
      // Without a publication nobody writes, and none can begin while the operation has the slot.
      if (copying && published) requireShortPause([prediction], resource);
      if (!copying) requireShortStall(prediction, resource, force);
      cutSeconds.observe({ figure: 'predicted' }, prediction.stallMs / 1_000);
      volumeExtents.observe(prediction.extents);
      return undefined;
    },
  };
  const stage: Step<Cut, CreateSnapshotRequest> = {
    name: 'stage',
    calls: ['writers', 'stage', 'stageTogether'],
    async run({ image, source, published, daemon }, { operation, progress, call, long }) {
      if (progress.made === true) return undefined;
      const { volumes, exporter } = await blocks.open(operation.tenantId, operation.backendId);
      const ref = stageOf(operation, image);
      const begun = performance.now();
      if (operation.request.copying && published) {
        const pids = await call('writers', signal => exporter.writers(daemon, signal));
        const pause = { pids, deadlineMs: PAUSE_LIMIT_MS };
        await long('stageTogether', signal => volumes.stageTogether([{ stage: ref, source }], pause, signal));
      } else await long('stage', signal => volumes.stage(ref, { kind: 'copy', source, thick: false }, signal));
      cutSeconds.observe({ figure: 'measured' }, (performance.now() - begun) / 1_000);
      return undefined;
    },
  };
  const commit: Step<Cut, CreateSnapshotRequest> = {
    name: 'commit',
    calls: ['commit', 'inspectImage'],
    point(writer, operation) {
      if (operation.progress.made !== true) writer.write(CUT_AT(operation), resourceOf(operation));
    },
    async run({ image }, { operation, progress, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      progress.sizeBytes = `${await commitImage(volumes, image, operation, call)}`;
      return undefined;
    },
  };
  return {
    async begin(tx, operation) {
      const [cut] = await readCuts(tx, operation);
      if (!cut) throw new StorageError('internal', `snapshot ${operation.resourceId} has no row`, { retry: 'person' });
      return cut;
    },
    steps: [predict, stage, commit],
    undo: [removeImages(blocks, ({ image }: Cut) => [image])],
    succeed(writer, operation) {
      writer.write(TAKEN, [...resourceOf(operation), operation.progress.sizeBytes]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(GONE(operation), resourceOf(operation));
    },
  };
}
