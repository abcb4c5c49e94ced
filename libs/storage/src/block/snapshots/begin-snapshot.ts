import type { Begin } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import type { SnapshotRequest } from '#storage/block/block-storage';
import { requireRoom } from '#storage/block/pools/pool-capacity';
import { readPools } from '#storage/block/pools/pool-store';
import { createSnapshot } from '#storage/block/snapshots/create-snapshot';
import { insertSnapshot, lockSnapshot, type SnapshotOwner } from '#storage/block/snapshots/snapshot-store';
import { lockUsableVolume } from '#storage/block/volumes/volume-store';

export interface NewSnapshot extends SnapshotRequest {
  /** The incarnation; given, so that other rows of the transaction may refer to it before. */
  id: string;
}

/**
 * Claims the name at the volume and begins `snapshot.create`, which ends the transaction; or finds who has the name
 * already: `begun` is false then, nothing was written, and `join` is the operation that still works on it. Throws what
 * forbids a snapshot of the volume: not there, not ready, lost, its pool full or down.
 */
export async function beginSnapshot(
  tx: Tx,
  begin: Begin,
  { operationId, ...owner }: SnapshotOwner & { operationId: string },
  request: NewSnapshot,
): Promise<{ id: string; begun: boolean; join?: string }> {
  const volume = await lockUsableVolume(tx, owner, request.volumeId);
  const existing = await lockSnapshot(tx, owner, { volumeId: volume.id, name: request.name });
  if (existing) {
    const resource = `snapshot ${existing.name}`;
    if (existing.state === 'deleting')
      throw new StorageError('aborted', `${resource} is being deleted; try again when it is gone`, { resource });
    if (existing.condition)
      throw new StorageError('failed_precondition', `${resource}: ${existing.condition.message}`, { resource });
    return { id: existing.id, begun: false, join: existing.activeOperation ?? undefined };
  }
  const { hidden = false, force = false } = request;
  // What is only made to clone from is as new as its clone.
  await requireRoom(tx, owner, volume.pool, hidden ? 'new' : 'more');
  const pools = await readPools(tx, owner.tenantId, owner.backendId);
  const copying = pools.find(({ name }) => name === volume.pool)?.clone === 'copy';
  await insertSnapshot(tx, owner, { ...request, volumeId: volume.id, hidden, operationId });
  await begin(createSnapshot, {
    class: copying ? 'copy' : 'fast',
    resourceId: request.id,
    resourceName: request.name,
    request: {
      volumeId: volume.id,
      copying,
      force,
      resources: [volume.id],
    },
  });
  return { id: request.id, begun: true };
}
