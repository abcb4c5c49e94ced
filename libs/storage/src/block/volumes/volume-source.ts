import type { ImageRef } from '#backends/block-backend';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { BlockCaller, VolumeOrigin } from '#storage/block/block-storage';
import { lockUsableVolume, lockVolume, type VolumeRow, volumeImage } from '#storage/block/volumes/volume-store';
import type { DesiredVolume } from '#storage/shared/desired-state';

/** What a volume is made from, as it is when that is accepted. */
export interface VolumeSource {
  image: ImageRef;
  sizeBytes: bigint;
  /** Absent: an image that is no volume's. */
  volume?: { id: string; name: string };
  /** Absent: not by way of a snapshot. */
  snapshotId?: string;
}

/** SHARE, so that neither it nor its volume can be deleted before the clone is there and counts as its dependant. */
const SNAPSHOT = sql(
  'volume_source_snapshot',
  `SELECT s.id, s.name, s.state, s.size_bytes::text AS "sizeBytes", s.pool, s.folder, s.volume_id AS "volumeId", v.name AS "volumeName"
     FROM trivet.snapshot s
     JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
    WHERE s.tenant_id = $1 AND s.backend_id = $2 AND s.id = $3 AND s.state <> 'gone'
      FOR SHARE`,
);

interface SnapshotRow {
  id: string;
  name: string;
  state: string;
  sizeBytes: string | null;
  pool: string;
  folder: string;
  volumeId: string;
  volumeName: string;
}

/** The origin as its volume keeps it: by id. `named`: id of the volume that it names, where it does. */
export function keptOrigin(origin: VolumeOrigin | undefined, named: string | undefined): DesiredVolume['source'] {
  if (!origin || 'image' in origin) return origin;
  if ('snapshotId' in origin) return { snapshotId: origin.snapshotId };
  return 'volumeId' in origin ? origin : { volumeId: named ?? '' };
}

/** The same of a repeat, by what `made` was made from: also when that is gone by now, or has another name. */
export function repeatedOrigin(origin: VolumeOrigin | undefined, made: VolumeRow): DesiredVolume['source'] {
  if (origin && 'snapshotId' in origin && origin.snapshotId === made.baseSnapshotId)
    checkVolume(origin, made.parentVolumeId, 'its snapshot', made.cloneOf);
  const isNamed =
    origin && 'volumeName' in origin && origin.volumeName === made.cloneOf && made.baseSnapshotId === null;
  return keptOrigin(origin, (isNamed && made.parentVolumeId) || undefined);
}

function checkVolume({ volumeId }: { volumeId?: string }, is: string | null, snapshot: string, volume: string): void {
  if (volumeId !== undefined && volumeId !== is)
    throw invalid('source.volumeId', `${snapshot} is of another volume, ${volume}`);
}

/** `image`: what `findImage` said of it. */
export async function requireSource(
  tx: Tx,
  caller: BlockCaller,
  origin: VolumeOrigin | undefined,
  image: VolumeSource | StorageError | undefined,
): Promise<VolumeSource | undefined> {
  if (isStorageError(image)) throw image;
  if (!origin || 'image' in origin) return image;
  if (!('snapshotId' in origin)) {
    const row = await lockUsableVolume(
      tx,
      caller,
      'volumeId' in origin ? origin.volumeId : await idOf(tx, caller, origin),
    );
    return {
      image: volumeImage(row),
      sizeBytes: BigInt(row.sizeBytes),
      volume: { id: row.id, name: row.name },
    };
  }
  const { snapshotId } = origin;
  const [row] = isUuid(snapshotId)
    ? await tx.query<SnapshotRow>(SNAPSHOT, [caller.tenantId, caller.backendId, snapshotId])
    : [];
  if (!row || row.state === 'deleting')
    throw new StorageError('not_found', `Snapshot with id ${snapshotId} not found.`, { field: 'source.snapshotId' });
  checkVolume(origin, row.volumeId, `snapshot ${row.name}`, row.volumeName);
  if (row.state !== 'ready' || row.sizeBytes === null)
    throw new StorageError('aborted', `snapshot ${snapshotId} is not complete yet; try again`, { retry: 'later' });
  return {
    image: { pool: row.pool, kind: 'snapshot', id: row.id, folder: row.folder },
    sizeBytes: BigInt(row.sizeBytes),
    volume: { id: row.volumeId, name: row.volumeName },
    snapshotId: row.id,
  };
}

async function idOf(tx: Tx, caller: BlockCaller, { volumeName }: { volumeName: string }): Promise<string> {
  const found = await lockVolume(tx, caller, { name: volumeName });
  if (found && found.state !== 'deleting') return found.id;
  throw invalid('source.volumeName', `no volume is named "${volumeName}" here`);
}
