import type { Slot } from '#operations/accepting/accept';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling, Step } from '#operations/definitions/handler';
import { isStorageError, StorageError } from '#platform/errors';
import { cutSeconds, volumeExtents } from '#platform/metrics/metrics';
import { GROUP_GONE, GROUP_READY } from '#storage/block/groups/snapshot-group-store';
import { EXTENT_LIMIT, PAUSE_LIMIT_MS, requireShortPause } from '#storage/block/snapshots/cut-limits';
import { commitImage, removeImages } from '#storage/block/snapshots/snapshot-images';
import { cutSlots } from '#storage/block/snapshots/snapshot-slots';
import {
  CUT_AT,
  type Cut,
  daemonsOf,
  GONE,
  readCuts,
  resourceOf,
  stageOf,
  TAKEN,
} from '#storage/block/snapshots/snapshot-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface CreateSnapshotGroupRequest {
  /** The volumes. */
  resources: readonly string[];
}

export const ownGroup = (groupId: string): Slot => ({ resource: groupId, slot: 'lifecycle', own: true });

/**
 * All members are staged while their exporters stand still, and get their names after the last one is staged (invariant
 * F4). An attempt that did not come to its end leaves images of one instant, but nobody knows whether all of them: the next
 * one discards the whole cut and makes another.
 * Whoever began to write to one member after its cut and then to another one before its cut would tear the group.
 */
export const createSnapshotGroup = defineOperation('snapshot_group.create', {
  resourceKind: 'snapshot_group',
  class: 'fast',
  slots: (id, { resources }: CreateSnapshotGroupRequest) => [
    ownGroup(id),
    ...resources.flatMap(volumeId => cutSlots(volumeId, { still: true })),
  ],
  carriedOut: takeSnapshots,
});

function takeSnapshots({ blocks }: BlockNeeds): Handling<Cut[], CreateSnapshotGroupRequest> {
  const remove = removeImages(blocks, (cuts: Cut[]) => cuts.map(({ image }) => image));
  const discard: Step<Cut[], CreateSnapshotGroupRequest> = {
    ...remove,
    name: 'discard',
    run: async (cuts, context) =>
      context.operation.attempt > 1 ? remove.run(cuts, context).catch(asUnderWay) : undefined,
  };
  const predict: Step<Cut[], CreateSnapshotGroupRequest> = {
    name: 'predict',
    calls: ['predictCut'],
    async run(cuts, { operation, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const predictions = [];
      for (const { source } of cuts)
        predictions.push(await call('predictCut', signal => volumes.predictCut(source, EXTENT_LIMIT, signal)));
      requireShortPause(predictions, `snapshot group ${operation.resourceName}`);
      for (const { stallMs, extents } of predictions) {
        cutSeconds.observe({ figure: 'predicted' }, stallMs / 1_000);
        volumeExtents.observe(extents);
      }
      return undefined;
    },
  };
  const stage: Step<Cut[], CreateSnapshotGroupRequest> = {
    name: 'stage',
    calls: ['writers', 'stageTogether'],
    async run(cuts, { operation, call, long }) {
      const { volumes, exporter } = await blocks.open(operation.tenantId, operation.backendId);
      const pids = new Set<number>();
      for (const daemon of daemonsOf(cuts))
        for (const pid of await call('writers', signal => exporter.writers(daemon, signal))) pids.add(pid);
      const stages = cuts.map(({ image, source }) => ({ stage: stageOf(operation, image), source }));
      const pause = { pids: [...pids], deadlineMs: PAUSE_LIMIT_MS };
      const { pausedMs } = await long('stageTogether', signal => volumes.stageTogether(stages, pause, signal));
      cutSeconds.observe({ figure: 'measured' }, pausedMs / 1_000);
      return undefined;
    },
  };
  const commit: Step<Cut[], CreateSnapshotGroupRequest> = {
    name: 'commit',
    calls: ['commit', 'inspectImage'],
    point(writer, operation) {
      writer.write(CUT_AT(operation), resourceOf(operation));
    },
    async run(cuts, { operation, progress, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const sizes: Record<string, string> = {};
      for (const { image } of cuts) sizes[image.id] = `${await commitImage(volumes, image, operation, call)}`;
      progress.sizes = sizes;
      return undefined;
    },
  };
  return {
    begin: readCuts,
    steps: [discard, predict, stage, commit],
    undo: [remove],
    succeed(writer, operation) {
      const { tenantId, id } = operation;
      for (const [snapshotId, size] of Object.entries(operation.progress.sizes as Record<string, string>))
        writer.write(TAKEN, [tenantId, snapshotId, id, size]);
      writer.write(GROUP_READY, resourceOf(operation));
      return undefined;
    },
    fail(writer, operation) {
      writer.write(GONE(operation), resourceOf(operation));
      writer.write(GROUP_GONE, resourceOf(operation));
    },
  };
}

/** What a worker that died has open is let go of by the cluster within half a minute: no conflict that a caller could mend. */
function asUnderWay(error: unknown): never {
  if (!isStorageError(error) || error.kind !== 'failed_precondition' || error.retry !== 'later') throw error;
  throw new StorageError('aborted', error.message, { retry: 'later', cause: error });
}
