import type { ImageRef } from '#backends/block-backend';
import type { Begin } from '#operations/accepting/operations';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import type { Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { createSnapshot } from '#storage/block/snapshots/create-snapshot';
import { GIVEN_UP_SNAPSHOTS, removeImages, unlinkable } from '#storage/block/snapshots/snapshot-images';
import { ownSnapshot } from '#storage/block/snapshots/snapshot-slots';
import { clonesOf, type SnapshotRow, setSnapshotStates } from '#storage/block/snapshots/snapshot-store';
import { GONE, NOT_GONE, resourceOf } from '#storage/block/snapshots/snapshot-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

/** It cannot fail: what cannot be removed waits for a person. */
export const deleteSnapshot = defineOperation('snapshot.delete', {
  resourceKind: 'snapshot',
  class: 'destroy',
  slots: (id, _: Record<never, never>) => [ownSnapshot(id)],
  negates: () => [createSnapshot],
  carriedOut: ({ blocks }: BlockNeeds): Handling<ImageRef[]> => ({
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
  }),
});

/**
 * What holds a snapshot against its deletion. A clone that is being made reads it: busy. One that is there does not need
 * it, but the specification has callers delete clones first; what was hidden from them is exempt.
 */
export async function requireDeletable(tx: Tx, tenantId: string, rows: readonly SnapshotRow[]): Promise<void> {
  const clones = await clonesOf(
    tx,
    tenantId,
    rows.map(({ id }) => id),
  );
  for (const row of rows) {
    const clone = clones.get(row.id);
    const resource = `snapshot ${row.name}`;
    if (clone?.copying)
      throw new StorageError('aborted', `${resource} is being cloned; try again when the clone is complete`, {
        resource,
        field: 'clones',
      });
    if (clone && !row.hidden)
      throw new StorageError('failed_precondition', `Snapshot ${row.name} for volume ${row.volumeName} has a clone.`, {
        resource,
        field: 'clones',
      });
  }
}

/** Hides it from now on, and begins `snapshot.delete`, which ends the transaction. The row is locked and deletable. */
export async function beginDeletion(
  tx: Tx,
  begin: Begin,
  { tenantId, operationId }: { tenantId: string; operationId: string },
  row: SnapshotRow,
): Promise<void> {
  await setSnapshotStates(tx, tenantId, [row.id], 'deleting', operationId);
  await begin(deleteSnapshot, { resourceId: row.id, resourceName: row.name, request: {} });
}
