import type { ImageRef } from '#backends/block-backend';
import type { UnitIdentity } from '#backends/exporter';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { BlockCaller, VolumeConfig, VolumeView } from '#storage/block/block-storage';
import type { DesiredVolume } from '#storage/shared/desired-state';

export type VolumeState = 'creating' | 'ready' | 'deleting' | 'binned' | 'gone';

export interface VolumeCondition {
  type: string;
  message: string;
}

/** What hosts know a volume's disk by. It does not change while any host has the volume. */
export interface TargetIdentity extends UnitIdentity {
  /** RFC 3720 name. */
  name: string;
  /** Which daemon of its pool serves it; absent: the first. */
  daemon?: number;
}

export type VolumeKey = { id: string } | { name: string };

/** bigint columns come as decimal text. */
export interface FoundVolume {
  id: string;
  name: string;
  state: VolumeState;
  sizeBytes: string;
  allocatedBytes: string;
  description: string;
  published: boolean;
  volumeGroupId: string | null;
  baseSnapshotId: string | null;
  parentVolumeId: string | null;
  cloneOf: string;
  pool: string;
  folder: string;
  thick: boolean;
  destroyOnDelete: boolean;
  config: VolumeConfig;
  activeOperation: string | null;
  condition: VolumeCondition | null;
  createdAt: Date;
}

/** With what only a change needs to know. */
export interface VolumeRow extends FoundVolume {
  desired: DesiredVolume;
  fingerprint: Buffer;
  tid: number | null;
  serialNumber: string | null;
  appliedInstance: string | null;
}

export const FOUND = `id, name, state, size_bytes::text AS "sizeBytes", allocated_bytes::text AS "allocatedBytes", description, published,
  volume_group_id AS "volumeGroupId", base_snapshot_id AS "baseSnapshotId", parent_volume_id AS "parentVolumeId",
  clone_of AS "cloneOf", pool, folder, thick, destroy_on_delete AS "destroyOnDelete", config,
  active_operation AS "activeOperation", condition, created_at AS "createdAt"`;
const PUBLISHED = `EXISTS (SELECT FROM trivet.publication p
                            WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id) AS published`;

const ROW = `SELECT ${FOUND}, desired, fingerprint, tid, serial_number AS "serialNumber",
       applied_instance AS "appliedInstance"`;
const LOCK_BY_ID = sql(
  'volume_lock_by_id',
  `${ROW} FROM (SELECT v.*, ${PUBLISHED} FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.id = $3 AND v.state NOT IN ('binned', 'gone') FOR UPDATE OF v) AS v`,
);
const LOCK_BY_NAME = sql(
  'volume_lock_by_name',
  `${ROW} FROM (SELECT v.*, ${PUBLISHED} FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.name = $3 AND v.state NOT IN ('binned', 'gone') FOR UPDATE OF v) AS v`,
);
const PAGE = sql(
  'volume_page',
  `SELECT ${FOUND} FROM (SELECT v.*, ${PUBLISHED} FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.name > $3 AND v.state NOT IN ('binned', 'gone', 'deleting')
     ORDER BY v.name LIMIT $4) AS v`,
);
const SET_STATE = sql(
  'volume_set_state',
  `UPDATE trivet.volume SET state = $3, active_operation = $4, updated_at = now() WHERE tenant_id = $1 AND id = $2`,
);

export async function lockVolume(
  tx: Tx,
  caller: Pick<BlockCaller, 'tenantId' | 'backendId'>,
  by: VolumeKey,
): Promise<VolumeRow | undefined> {
  if ('id' in by && !isUuid(by.id)) return undefined;
  const [statement, key] = 'id' in by ? [LOCK_BY_ID, by.id] : [LOCK_BY_NAME, by.name];
  const [row] = await tx.query<VolumeRow>(statement, [caller.tenantId, caller.backendId, key]);
  return row;
}

/** Ready, not lost, and nothing that changes it under way: what a snapshot, a clone or a publication needs. */
export async function lockUsableVolume(
  tx: Tx,
  caller: Pick<BlockCaller, 'tenantId' | 'backendId'>,
  volumeId: string,
): Promise<VolumeRow> {
  const row = await lockVolume(tx, caller, { id: volumeId });
  if (!row || row.state === 'deleting') throw volumeNotFound(volumeId);
  const resource = `volume ${row.name}`;
  if (row.state === 'creating')
    throw new StorageError('aborted', `${resource} is not complete yet; try again`, { resource });
  if (row.condition)
    throw new StorageError('failed_precondition', `${resource}: ${row.condition.message}`, { resource });
  return row;
}

export async function volumePage(
  database: Database,
  caller: BlockCaller,
  after: string,
  limit: number,
): Promise<FoundVolume[]> {
  return database.withTenant(caller.tenantId, tx =>
    tx.query<FoundVolume>(PAGE, [caller.tenantId, caller.backendId, after, limit]),
  );
}

export async function setVolumeState(
  tx: Tx,
  tenantId: string,
  volumeId: string,
  state: VolumeState,
  operationId: string | null,
): Promise<void> {
  await tx.query(SET_STATE, [tenantId, volumeId, state, operationId]);
}

export const volumeNotFound = (volumeId: string): StorageError =>
  new StorageError('not_found', `Volume with id ${volumeId} not found.`, { resource: `volume ${volumeId}` });

export const volumeView = (row: FoundVolume): VolumeView => ({
  id: row.id,
  name: row.name,
  sizeBytes: BigInt(row.sizeBytes),
  usedBytes: usedOf(row),
  description: row.description,
  published: row.published,
  volumeGroupId: row.volumeGroupId ?? '',
  baseSnapshotId: row.baseSnapshotId ?? '',
  parentVolumeId: row.parentVolumeId ?? '',
  cloneOf: row.cloneOf,
  pool: row.pool,
  folder: row.folder,
  thick: row.thick,
  destroyOnDelete: row.destroyOnDelete,
  config: row.config,
  ready: row.state === 'ready',
  createdAt: row.createdAt,
});

/** A thick volume has all of its blocks. Of a thin one the file system may count some more than it has bytes. */
function usedOf({ sizeBytes, allocatedBytes, thick }: FoundVolume): bigint {
  const [size, allocated] = [BigInt(sizeBytes), BigInt(allocatedBytes)];
  return thick || allocated > size ? size : allocated;
}

/** The volume's image at the backend: the incarnation is its name. */
export const volumeImage = (row: { id: string; pool: string; folder: string }): ImageRef => ({
  pool: row.pool,
  kind: 'volume',
  id: row.id,
  folder: row.folder,
});
