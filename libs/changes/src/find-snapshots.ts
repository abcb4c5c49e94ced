import type { ImageRef } from '#backends/block-backend';
import type { Offset, SnapshotKey } from '#changes/changed-blocks';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { invalid, StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import { snapshotImage } from '#storage/block/snapshots/snapshot-store';

/** A cut that is asked about. */
export interface Asked {
  id: string;
  name: string;
  volumeId: string;
  backendId: string;
  cut: number;
  sizeBytes: number;
  indexState: 'pending' | 'indexed' | 'broken';
  image: ImageRef;
  /** The image is there as far as is known; only a pin makes sure of it. */
  hasImage: boolean;
}

interface Row {
  id: string;
  name: string;
  state: 'creating' | 'ready' | 'deleting' | 'gone';
  volumeId: string;
  backendId: string;
  pool: string;
  folder: string;
  cut: number | null;
  sizeBytes: number | null;
  indexState: Asked['indexState'];
  hasImage: boolean;
}

const ROW = `SELECT s.id, s.name, s.state, s.volume_id AS "volumeId", s.backend_id AS "backendId", s.pool, s.folder,
    s.cut::float8 AS cut, s.size_bytes::float8 AS "sizeBytes", s.index_state AS "indexState",
    s.image_gone_at IS NULL AS "hasImage"
  FROM trivet.snapshot s
  JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
 WHERE s.tenant_id = $1 AND v.state NOT IN ('deleting', 'binned', 'gone') AND NOT s.hidden`;
const BY_ID = sql('changes_snapshot_by_id', `${ROW} AND s.id = $2`);
/** Names are free again when a snapshot is deleted. $3 a volume, or null for all. */
const BY_NAME = sql(
  'changes_snapshot_by_name',
  `${ROW} AND s.name = $2 AND ($3::uuid IS NULL OR s.volume_id = $3) AND s.state IN ('creating', 'ready')
    ORDER BY s.volume_id LIMIT 2`,
);

export async function findTarget(tx: Tx, tenantId: string, key: SnapshotKey): Promise<Asked> {
  const row = 'id' in key ? await byId(tx, tenantId, key.id) : await byName(tx, tenantId, key, 'target');
  // A deleted one is a base at most.
  if (!row || (row.state !== 'ready' && row.state !== 'creating')) throw notFound(key);
  return asked(row, key);
}

/** A bare name means the target's volume before any other. */
export async function findBase(tx: Tx, tenantId: string, key: SnapshotKey, target: Asked): Promise<Asked> {
  const row =
    'id' in key
      ? await byId(tx, tenantId, key.id)
      : 'volumeId' in key
        ? await byName(tx, tenantId, key, 'base')
        : ((await byName(tx, tenantId, { volumeId: target.volumeId, name: key.name }, 'base')) ??
          (await byName(tx, tenantId, key, 'base')));
  if (!row) throw notFound(key);
  if (row.state === 'gone' && row.cut === null && row.sizeBytes !== null)
    throw new StorageError(
      'failed_precondition',
      `snapshot ${row.name} was deleted, and what changed since it is not known any more; do a full backup`,
      { resource: `snapshot ${row.name}` },
    );
  return asked(row, key);
}

async function byId(tx: Tx, tenantId: string, id: string): Promise<Row | undefined> {
  if (!isUuid(id)) return undefined;
  const [row] = await tx.query<Row>(BY_ID, [tenantId, id]);
  return row;
}

async function byName(
  tx: Tx,
  tenantId: string,
  key: { volumeId?: string; name: string },
  field: 'base' | 'target',
): Promise<Row | undefined> {
  if (key.volumeId !== undefined && !isUuid(key.volumeId)) return undefined;
  // PostgreSQL has no text with it, and would call it a defect.
  if (key.name.includes('\0')) return undefined;
  const rows = await tx.query<Row>(BY_NAME, [tenantId, key.name, key.volumeId ?? null]);
  if (rows.length > 1) throw invalid(field, `several volumes have a snapshot ${key.name}; say which one by its id`);
  return rows[0];
}

function asked(row: Row, key: SnapshotKey): Asked {
  if (row.state === 'creating')
    throw new StorageError('unavailable', `snapshot ${row.name} is not complete yet; try again`, {
      resource: `snapshot ${row.name}`,
    });
  // Reaped from the chain, or one whose creation failed.
  if (row.cut === null || row.sizeBytes === null) throw notFound(key);
  const { id, name, volumeId, backendId, cut, sizeBytes, indexState, hasImage } = row;
  return { id, name, volumeId, backendId, cut, sizeBytes, indexState, hasImage, image: snapshotImage(row) };
}

const notFound = (key: SnapshotKey): StorageError => {
  const name = 'id' in key ? key.id : key.name;
  return new StorageError('not_found', `there is no snapshot ${name}`, { resource: `snapshot ${name}` });
};

/** Order is that of the cuts: clocks have a resolution, and go backwards (invariant C2). */
export function requireOrder(base: Asked, target: Asked): void {
  if (base.volumeId !== target.volumeId)
    throw invalid('base', `snapshot ${base.name} is of another volume than ${target.name}`);
  if (base.cut > target.cut) throw invalid('base', `snapshot ${base.name} was taken after ${target.name}`);
}

/** Gives the offset, which no volume's size makes larger than numbers are exact. */
export function requireInside(from: Offset, { sizeBytes, name }: Asked): number {
  if (from >= 0 && from <= sizeBytes) return Number(from);
  throw new StorageError('out_of_range', `offset ${from} is beyond snapshot ${name}, which has ${sizeBytes} bytes`);
}
