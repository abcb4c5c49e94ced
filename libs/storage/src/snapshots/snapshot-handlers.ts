import type { BlockBackend, ImageRef } from '#backends/block-backend';
import type { Handler, Step, StepContext } from '#operations/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { cutSeconds, volumeExtents } from '#platform/metrics';
import { EXTENT_LIMIT, PAUSE_LIMIT_MS, requireShortPause, requireShortStall } from '#storage/snapshots/cut-limits';
import { giveUpImages } from '#storage/snapshots/kept-images';
import { createSnapshot, deleteSnapshot } from '#storage/snapshots/snapshot-operations';
import { clonesOf } from '#storage/snapshots/snapshot-store';
import {
  CUT_AT,
  type Cut,
  GONE,
  NOT_GONE,
  ofResource,
  readCuts,
  resourceOf,
  stageOf,
  TAKEN,
} from '#storage/snapshots/snapshot-work';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

/**
 * A snapshot is a copy of the volume's image that nobody may change any more. It is made under a temporary name and gets
 * its own in one step, so an image of that name is whole, and a repeat after a crash goes on from it: whoever finds it
 * also finds the time of the cut, which is committed in between.
 */
export function createSnapshotHandler(blocks: BlockDirectory): Handler {
  const predict: Step<Cut> = {
    name: 'predict',
    calls: ['inspectImage', 'discardStages', 'predictCut'],
    async run({ image, source, volumeName, published }, { operation, progress, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const found = await call('inspectImage', signal => volumes.inspectImage(image, signal));
      progress.made = found.state === 'present';
      await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
      if (progress.made) return undefined;
      const prediction = await call('predictCut', signal => volumes.predictCut(source, EXTENT_LIMIT, signal));
      const { copying, force } = createSnapshot.requestOf(operation);
      const resource = `volume ${volumeName}`;
      // Without a publication nobody writes, and none can begin while the operation has the slot.
      if (copying && published) requireShortPause([prediction], resource);
      if (!copying) requireShortStall(prediction, resource, force);
      cutSeconds.observe({ figure: 'predicted' }, prediction.stallMs / 1_000);
      volumeExtents.observe(prediction.extents);
      return undefined;
    },
  };
  const stage: Step<Cut> = {
    name: 'stage',
    calls: ['writers', 'stage', 'stageTogether'],
    async run({ image, source, published, daemon }, { operation, progress, call, long }) {
      if (progress.made === true) return undefined;
      const { volumes, exporter } = await blocks.open(operation.tenantId, operation.backendId);
      const ref = stageOf(operation, image);
      const begun = performance.now();
      if (createSnapshot.requestOf(operation).copying && published) {
        const pids = await call('writers', signal => exporter.writers(daemon, signal));
        const pause = { pids, deadlineMs: PAUSE_LIMIT_MS };
        await long('stageTogether', signal => volumes.stageTogether([{ stage: ref, source }], pause, signal));
      } else await long('stage', signal => volumes.stage(ref, { kind: 'copy', source, thick: false }, signal));
      cutSeconds.observe({ figure: 'measured' }, (performance.now() - begun) / 1_000);
      return undefined;
    },
  };
  const commit: Step<Cut> = {
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
  return createSnapshot.handledBy<Cut>({
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
  });
}

/** Gives the staged image its name, or finds that it has it, and says how large it is. */
export async function commitImage(
  volumes: BlockBackend,
  image: ImageRef,
  operation: LeasedOperation,
  call: StepContext['call'],
): Promise<bigint> {
  await call('commit', signal => volumes.commit(stageOf(operation, image), image, { readOnly: true }, signal));
  const found = await call('inspectImage', signal => volumes.inspectImage(image, signal));
  if (found.state === 'present') return found.sizeBytes;
  throw new StorageError('internal', `image ${image.id} is not there after it was made`, { retry: 'later' });
}

/** What a creation left, or what a deletion takes away. */
export function removeImages<Work>(blocks: BlockDirectory, imagesOf: (work: Work) => readonly ImageRef[]): Step<Work> {
  return {
    name: 'remove',
    calls: ['discardStages', 'removeImage'],
    async run(work, { operation, call, long }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      for (const image of imagesOf(work)) {
        await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
        await long('removeImage', signal => volumes.removeImage(image, operation.hostFence, signal));
      }
      return undefined;
    },
  };
}

export const GIVEN_UP_SNAPSHOTS =
  'a snapshot of which nothing was removed yet is there again; any other is gone, and an image that is left in its pool is reported by the audit';

const DOOMED = ofResource(
  'snapshot_doomed',
  which => `SELECT s.id, s.name FROM trivet.snapshot s WHERE s.tenant_id = $1 AND ${which} ORDER BY s.id`,
);

interface Doomed {
  id: string;
  name: string;
}

/**
 * Images of the operation's snapshots that are unlinked with it. Callers do not see these snapshots any more; an image
 * that is still needed stays, and goes when it is not (#storage/snapshots/kept-images).
 */
export async function unlinkable(tx: Tx, operation: LeasedOperation): Promise<ImageRef[]> {
  const { tenantId, resourceId } = operation;
  const doomed = await tx.query<Doomed>(DOOMED(operation), [tenantId, resourceId]);
  const clones = await clonesOf(
    tx,
    tenantId,
    doomed.map(snapshot => snapshot.id),
  );
  for (const { id: snapshotId, name } of doomed)
    if (clones.get(snapshotId)?.copying)
      throw new StorageError('aborted', `snapshot ${name} is being cloned`, { resource: `snapshot ${name}` });
  return giveUpImages(
    tx,
    tenantId,
    doomed.map(({ id }) => id),
  );
}

/** It cannot fail: what cannot be removed waits for a person. */
export function deleteSnapshotHandler(blocks: BlockDirectory): Handler {
  return deleteSnapshot.handledBy<ImageRef[]>({
    begin: unlinkable,
    steps: [removeImages(blocks, images => images)],
    succeed(writer, operation) {
      writer.write(GONE(operation), resourceOf(operation));
      return undefined;
    },
    giveUp: {
      leaves: GIVEN_UP_SNAPSHOTS,
      write(writer, operation) {
        writer.write(NOT_GONE(operation), resourceOf(operation));
      },
    },
  });
}
