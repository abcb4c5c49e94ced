import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import type { Begin } from '#storage/block-parts';
import { deleteSnapshot } from '#storage/snapshots/snapshot-operations';
import { clonesOf, type SnapshotRow, setSnapshotStates } from '#storage/snapshots/snapshot-store';

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
