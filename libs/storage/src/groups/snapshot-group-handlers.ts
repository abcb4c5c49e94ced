import type { ImageRef } from '#backends/block-backend';
import type { Handler, Step } from '#operations/handler';
import { cutSeconds, volumeExtents } from '#platform/metrics';
import { createSnapshotGroup, deleteSnapshotGroup } from '#storage/groups/snapshot-group-operations';
import { GROUP_GONE, GROUP_NOT_GONE, GROUP_READY } from '#storage/groups/snapshot-group-store';
import { EXTENT_LIMIT, PAUSE_LIMIT_MS, requireShortPause } from '#storage/snapshots/cut-limits';
import { commitImage, GIVEN_UP_SNAPSHOTS, removeImages, unlinkable } from '#storage/snapshots/snapshot-handlers';
import {
  CUT_AT,
  type Cut,
  daemonsOf,
  GONE,
  NOT_GONE,
  readCuts,
  resourceOf,
  stageOf,
  TAKEN,
} from '#storage/snapshots/snapshot-work';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

/**
 * All members are staged while their exporters stand still, and get their names after the last one is staged (invariant
 * F4). An attempt that did not come to its end leaves images of one instant, but nobody knows whether all of them: the next
 * one discards the whole cut and makes another.
 */
export function createSnapshotGroupHandler(blocks: BlockDirectory): Handler {
  const remove = removeImages(blocks, (cuts: Cut[]) => cuts.map(({ image }) => image));
  const discard: Step<Cut[]> = {
    ...remove,
    name: 'discard',
    run: async (cuts, context) => (context.operation.attempt > 1 ? remove.run(cuts, context) : undefined),
  };
  const predict: Step<Cut[]> = {
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
  const stage: Step<Cut[]> = {
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
  const commit: Step<Cut[]> = {
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
  return createSnapshotGroup.handledBy<Cut[]>({
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
  });
}

/** It cannot fail: what cannot be removed waits for a person. */
export function deleteSnapshotGroupHandler(blocks: BlockDirectory): Handler {
  return deleteSnapshotGroup.handledBy<ImageRef[]>({
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
  });
}
