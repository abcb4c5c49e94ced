import type { ImageRef } from '#backends/block-backend';
import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { sql } from '#platform/sql';
import { isUuid } from '#platform/uuid';
import type { BlockCaller, VolumeRequest } from '#storage/block-storage';
import { lockUsableVolume, volumeImage } from '#storage/volumes/volume-store';

/** What a clone is made from, as it is when the clone is accepted. */
export interface VolumeSource {
  image: ImageRef;
  sizeBytes: bigint;
  volumeId: string;
  volumeName: string;
  /** Absent: cloned straight from the volume. */
  snapshotId?: string;
}

/** SHARE, so that neither it nor its volume can be deleted before the clone is there and counts as its dependant. */
const SNAPSHOT = sql(
  'volume_source_snapshot',
  `SELECT s.id, s.state, s.size_bytes::text AS "sizeBytes", s.pool, s.folder, s.volume_id AS "volumeId", v.name AS "volumeName"
     FROM trivet.snapshot s
     JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
    WHERE s.tenant_id = $1 AND s.backend_id = $2 AND s.id = $3 AND s.state <> 'gone'
      FOR SHARE`,
);

interface SnapshotRow {
  id: string;
  state: string;
  sizeBytes: string | null;
  pool: string;
  folder: string;
  volumeId: string;
  volumeName: string;
}

export async function requireSource(
  tx: Tx,
  caller: BlockCaller,
  source: NonNullable<VolumeRequest['source']>,
): Promise<VolumeSource> {
  if ('volumeId' in source) {
    const row = await lockUsableVolume(tx, caller, source.volumeId);
    return {
      image: volumeImage(row),
      sizeBytes: BigInt(row.sizeBytes),
      volumeId: row.id,
      volumeName: row.name,
    };
  }
  const { snapshotId } = source;
  const [row] = isUuid(snapshotId)
    ? await tx.query<SnapshotRow>(SNAPSHOT, [caller.tenantId, caller.backendId, snapshotId])
    : [];
  if (!row || row.state === 'deleting')
    throw new StorageError('not_found', `Snapshot with id ${snapshotId} not found.`, { field: 'base_snapshot_id' });
  if (row.state !== 'ready' || row.sizeBytes === null)
    throw new StorageError('aborted', `snapshot ${snapshotId} is not complete yet; try again`, { retry: 'later' });
  return {
    image: { pool: row.pool, kind: 'snapshot', id: row.id, folder: row.folder },
    sizeBytes: BigInt(row.sizeBytes),
    volumeId: row.volumeId,
    volumeName: row.volumeName,
    snapshotId: row.id,
  };
}
