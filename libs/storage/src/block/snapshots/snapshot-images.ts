import type { BlockBackend, ImageRef } from '#backends/block-backend';
import type { Step, StepContext } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { giveUpImages } from '#storage/block/snapshots/kept-images';
import { clonesOf } from '#storage/block/snapshots/snapshot-store';
import { ofResource, stageOf } from '#storage/block/snapshots/snapshot-work';
import type { BlockDirectory } from '#storage/shared/backend-directory';

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
 * that is still needed stays, and goes when it is not (#storage/block/snapshots/kept-images).
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
