import type { ImageRef } from '#backends/block-backend';
import type { Database, Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { BlockCaller, SnapshotView, VolumeConfig } from '#storage/block/block-storage';
import { HOLDS_VOLUME } from '#storage/block/volumes/snapshot-conditions';

export type SnapshotState = 'creating' | 'ready' | 'deleting' | 'gone';

/** Whose snapshots; the background has no caller. */
export type SnapshotOwner = Pick<BlockCaller, 'tenantId' | 'backendId'>;

/** bigint columns come as decimal text. */
export interface SnapshotRow {
  id: string;
  name: string;
  state: SnapshotState;
  hidden: boolean;
  description: string;
  config: VolumeConfig;
  pool: string;
  folder: string;
  volumeId: string;
  volumeName: string;
  /** Of the volume as it is while the cut is not made. */
  sizeBytes: string;
  cut: string | null;
  cutAt: Date | null;
  snapshotGroupId: string | null;
  activeOperation: string | null;
  condition: { type: string; message: string } | null;
  inUse: boolean;
  createdAt: Date;
}

/**
 * A clone that callers see: it is being made, or is there. One in the recycle bin does not count, since callers can
 * neither see nor delete it: they would be told of an obstacle that they cannot remove. Nothing is lost by it, because a
 * clone does not need its snapshot once it is made.
 */
const SEEN_CLONE = "c.state IN ('creating', 'ready')";

const ROW = `SELECT s.id, s.name, s.state, s.hidden, s.description, s.config, s.pool, s.folder,
  s.volume_id AS "volumeId", v.name AS "volumeName", coalesce(s.size_bytes, v.size_bytes)::text AS "sizeBytes",
  s.cut::text AS cut, s.cut_at AS "cutAt", s.snapshot_group_id AS "snapshotGroupId",
  s.active_operation AS "activeOperation", s.condition, s.created_at AS "createdAt",
  EXISTS (SELECT FROM trivet.volume c
           WHERE c.tenant_id = s.tenant_id AND c.base_snapshot_id = s.id AND ${SEEN_CLONE}) AS "inUse"
  FROM trivet.snapshot s JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
 WHERE s.tenant_id = $1 AND s.backend_id = $2`;

const BY_ID = `${ROW} AND s.id = $3 AND s.state <> 'gone'`;
const BY_KEY = `${ROW} AND s.volume_id = $3 AND s.name = $4 AND s.state <> 'gone'`;
const FIND_BY_ID = sql('snapshot_find_by_id', BY_ID);
const FIND_BY_KEY = sql('snapshot_find_by_key', BY_KEY);
const LOCK_BY_ID = sql('snapshot_lock_by_id', `${BY_ID} FOR UPDATE OF s`);
const LOCK_BY_KEY = sql('snapshot_lock_by_key', `${BY_KEY} FOR UPDATE OF s`);

/** Hidden ones have no cut, and what is not cut yet is in no list: it holds nothing yet that a caller may rely on. */
const LISTED = `s.state = 'ready' AND NOT s.hidden`;
const PAGE_OF_VOLUME = sql(
  'snapshot_page_of_volume',
  `${ROW} AND s.volume_id = $3 AND s.cut > $4 AND ${LISTED} ORDER BY s.cut LIMIT $5`,
);
const PAGE = sql(
  'snapshot_page',
  `${ROW} AND (s.volume_id, s.cut) > ($3, $4) AND ${LISTED} ORDER BY s.volume_id, s.cut LIMIT $5`,
);
const NAMED_AT = sql('snapshot_named_at', `${ROW} AND s.volume_id = $3 AND s.name = $4 AND ${LISTED}`);
const PAGE_NAMED = sql(
  'snapshot_page_named',
  `${ROW} AND s.name = $5 AND (s.volume_id, s.cut) > ($3, $4) AND ${LISTED} ORDER BY s.volume_id, s.cut LIMIT $6`,
);
const HOLDING = sql(
  'snapshot_holding',
  `${ROW} AND ($3::uuid IS NULL OR s.volume_id = $3) AND ${LISTED} AND ${HOLDS_VOLUME} LIMIT 1`,
);
const VOLUME_LIVES = sql(
  'snapshot_volume_lives',
  `SELECT FROM trivet.volume
    WHERE tenant_id = $1 AND backend_id = $2 AND id = $3 AND state NOT IN ('deleting', 'binned', 'gone')`,
);
const OF_GROUP = `${ROW} AND s.snapshot_group_id = $3 AND s.state <> 'gone' ORDER BY s.volume_id`;
const FIND_OF_GROUP = sql('snapshot_find_of_group', OF_GROUP);
const LOCK_OF_GROUP = sql('snapshot_lock_of_group', `${OF_GROUP} FOR UPDATE OF s`);

const INSERT = sql(
  'snapshot_insert',
  `INSERT INTO trivet.snapshot (tenant_id, id, backend_id, volume_id, name, state, hidden, description, config, pool,
                                folder, snapshot_group_id, active_operation)
   SELECT v.tenant_id, $3, v.backend_id, v.id, $5, 'creating', $6, $7, $8, v.pool, v.folder, $9, $10
     FROM trivet.volume v WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.id = $4`,
);
const SET_STATE = sql(
  'snapshot_set_state',
  `UPDATE trivet.snapshot SET state = $3, active_operation = $4, updated_at = now()
    WHERE tenant_id = $1 AND id = ANY ($2)`,
);
const CLONES = sql(
  'snapshot_clones',
  `SELECT c.base_snapshot_id AS "snapshotId", bool_or(c.state = 'creating') AS copying
     FROM trivet.volume c
    WHERE c.tenant_id = $1 AND c.base_snapshot_id = ANY ($2) AND ${SEEN_CLONE}
    GROUP BY 1`,
);

export type SnapshotKey = { id: string } | { volumeId: string; name: string };

export function findSnapshot(
  database: Database,
  owner: SnapshotOwner,
  by: SnapshotKey,
): Promise<SnapshotRow | undefined> {
  return database.withTenant(owner.tenantId, tx => select(tx, owner, by, FIND_BY_ID, FIND_BY_KEY));
}

export const lockSnapshot = (tx: Tx, owner: SnapshotOwner, by: SnapshotKey): Promise<SnapshotRow | undefined> =>
  select(tx, owner, by, LOCK_BY_ID, LOCK_BY_KEY);

async function select(
  tx: Tx,
  { tenantId, backendId }: SnapshotOwner,
  by: SnapshotKey,
  byId: Statement,
  byKey: Statement,
): Promise<SnapshotRow | undefined> {
  if (!isUuid('id' in by ? by.id : by.volumeId)) return undefined;
  const [statement, key] = 'id' in by ? [byId, [by.id]] : [byKey, [by.volumeId, by.name]];
  const [row] = await tx.query<SnapshotRow>(statement, [tenantId, backendId, ...key]);
  return row;
}

export async function holdingSnapshot(
  database: Database,
  { tenantId, backendId }: SnapshotOwner,
  volumeId: string | undefined,
): Promise<SnapshotRow | undefined> {
  const [row] = await database.withTenant(tenantId, tx =>
    tx.query<SnapshotRow>(HOLDING, [tenantId, backendId, volumeId ?? null]),
  );
  return row;
}

/** Before the first of all. */
export const START = { volumeId: '00000000-0000-0000-0000-000000000000', cut: '0' };

/** By cut within a volume; over all volumes by volume, then cut. */
export function snapshotPage(
  database: Database,
  { tenantId, backendId }: SnapshotOwner,
  { volumeId, name }: { volumeId?: string; name?: string },
  after: { volumeId: string; cut: string },
  limit: number,
): Promise<SnapshotRow[]> {
  const place = [tenantId, backendId];
  return database.withTenant(tenantId, tx => {
    if (volumeId !== undefined) return tx.query<SnapshotRow>(PAGE_OF_VOLUME, [...place, volumeId, after.cut, limit]);
    const from = [...place, after.volumeId, after.cut];
    return name === undefined
      ? tx.query<SnapshotRow>(PAGE, [...from, limit])
      : tx.query<SnapshotRow>(PAGE_NAMED, [...from, name, limit]);
  });
}

/** The volume's own of that name; when it has none, one of another volume (docs/callers.md#look-ups). */
export async function snapshotNamed(
  database: Database,
  { tenantId, backendId }: SnapshotOwner,
  volumeId: string,
  name: string,
): Promise<SnapshotRow | undefined> {
  return database.withTenant(tenantId, async tx => {
    const [own] = await tx.query<SnapshotRow>(NAMED_AT, [tenantId, backendId, volumeId, name]);
    if (own) return own;
    const lives = await tx.query(VOLUME_LIVES, [tenantId, backendId, volumeId]);
    if (lives.length === 0) return undefined;
    const [other] = await tx.query<SnapshotRow>(PAGE_NAMED, [tenantId, backendId, START.volumeId, START.cut, name, 1]);
    return other;
  });
}

export const findSnapshotsOfGroup = (tx: Tx, { tenantId, backendId }: SnapshotOwner, groupId: string) =>
  tx.query<SnapshotRow>(FIND_OF_GROUP, [tenantId, backendId, groupId]);

export const lockSnapshotsOfGroup = (tx: Tx, { tenantId, backendId }: SnapshotOwner, groupId: string) =>
  tx.query<SnapshotRow>(LOCK_OF_GROUP, [tenantId, backendId, groupId]);

export interface InsertedSnapshot {
  id: string;
  volumeId: string;
  name: string;
  hidden: boolean;
  description: string;
  config: VolumeConfig;
  snapshotGroupId?: string;
  operationId: string;
}

/** The volume's row is locked, so nobody else can take the name meanwhile. */
export async function insertSnapshot(tx: Tx, owner: SnapshotOwner, snapshot: InsertedSnapshot): Promise<void> {
  await tx.query(INSERT, [
    owner.tenantId,
    owner.backendId,
    snapshot.id,
    snapshot.volumeId,
    snapshot.name,
    snapshot.hidden,
    snapshot.description,
    JSON.stringify(snapshot.config),
    snapshot.snapshotGroupId ?? null,
    snapshot.operationId,
  ]);
}

export async function setSnapshotStates(
  tx: Tx,
  tenantId: string,
  ids: readonly string[],
  state: SnapshotState,
  operationId: string | null,
): Promise<void> {
  await tx.query(SET_STATE, [tenantId, ids, state, operationId]);
}

/**
 * Clones that callers see, of these snapshots. With the snapshots locked nobody can begin another one; ask after the
 * lock, in a statement of its own: what the locking statement saw may be older.
 */
export async function clonesOf(
  tx: Tx,
  tenantId: string,
  snapshotIds: readonly string[],
): Promise<Map<string, { copying: boolean }>> {
  const rows = await tx.query<{ snapshotId: string; copying: boolean }>(CLONES, [tenantId, snapshotIds]);
  return new Map(rows.map(({ snapshotId, copying }) => [snapshotId, { copying }]));
}

export const snapshotImage = (row: { id: string; pool: string; folder: string }): ImageRef => ({
  pool: row.pool,
  kind: 'snapshot',
  id: row.id,
  folder: row.folder,
});

export const snapshotNotFound = (id: string): StorageError =>
  new StorageError('not_found', `Snapshot with id ${id} not found.`, { resource: `snapshot ${id}` });

export const snapshotView = (row: SnapshotRow): SnapshotView => ({
  id: row.id,
  name: row.name,
  description: row.description,
  volumeId: row.volumeId,
  volumeName: row.volumeName,
  sizeBytes: BigInt(row.sizeBytes),
  createdAt: row.cutAt ?? row.createdAt,
  ready: row.state === 'ready',
  inUse: row.inUse,
  config: row.config,
});
