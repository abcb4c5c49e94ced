import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { SnapshotGroupRequest, SnapshotGroupView, VolumeConfig } from '#storage/block/block-storage';
import type { SnapshotOwner, SnapshotRow } from '#storage/block/snapshots/snapshot-store';
import { snapshotView } from '#storage/block/snapshots/snapshot-store';

export interface SnapshotGroupRow {
  id: string;
  name: string;
  description: string;
  config: VolumeConfig;
  volumeGroupId: string;
  volumeGroupName: string;
  state: 'creating' | 'ready' | 'deleting' | 'gone';
  activeOperation: string | null;
  createdAt: Date;
}

const ROW = `SELECT id, name, description, config, volume_group_id AS "volumeGroupId", state,
  (SELECT v.name FROM trivet.volume_group v WHERE v.tenant_id = g.tenant_id AND v.id = g.volume_group_id) AS "volumeGroupName",
  active_operation AS "activeOperation", created_at AS "createdAt"
  FROM trivet.snapshot_group g WHERE tenant_id = $1 AND backend_id = $2`;
const BY_ID = `${ROW} AND id = $3 AND state <> 'gone'`;
const FIND = sql('snapshot_group_find', BY_ID);
const LOCK_BY_ID = sql('snapshot_group_lock_by_id', `${BY_ID} FOR UPDATE`);
const LOCK_BY_NAME = sql(
  'snapshot_group_lock_by_name',
  `${ROW} AND volume_group_id = $3 AND name = $4 AND state <> 'gone' FOR UPDATE`,
);
const LIST = sql('snapshot_group_list', `${ROW} AND volume_group_id = $3 AND state = 'ready' ORDER BY id`);
const INSERT = sql(
  'snapshot_group_insert',
  `INSERT INTO trivet.snapshot_group (tenant_id, backend_id, id, volume_group_id, name, description, config, state,
                                      active_operation)
   VALUES ($1, $2, $3, $4, $5, $6, $7, 'creating', $8)`,
);
const SET_DELETING = sql(
  'snapshot_group_set_deleting',
  `UPDATE trivet.snapshot_group SET state = 'deleting', active_operation = $3, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

export async function findSnapshotGroup(tx: Tx, owner: SnapshotOwner, id: string) {
  return one(tx, FIND, owner, id);
}

export async function lockSnapshotGroup(tx: Tx, owner: SnapshotOwner, id: string) {
  return one(tx, LOCK_BY_ID, owner, id);
}

async function one(tx: Tx, statement: typeof FIND, { tenantId, backendId }: SnapshotOwner, id: string) {
  const [row] = isUuid(id) ? await tx.query<SnapshotGroupRow>(statement, [tenantId, backendId, id]) : [];
  return row;
}

/** The volume group is locked, so nobody else can take the name meanwhile. */
export async function lockSnapshotGroupNamed(
  tx: Tx,
  { tenantId, backendId }: SnapshotOwner,
  { volumeGroupId, name }: SnapshotGroupRequest,
): Promise<SnapshotGroupRow | undefined> {
  const [row] = await tx.query<SnapshotGroupRow>(LOCK_BY_NAME, [tenantId, backendId, volumeGroupId, name]);
  return row;
}

export const listSnapshotGroups = (tx: Tx, { tenantId, backendId }: SnapshotOwner, volumeGroupId: string) =>
  tx.query<SnapshotGroupRow>(LIST, [tenantId, backendId, volumeGroupId]);

export async function insertSnapshotGroup(
  tx: Tx,
  { tenantId, backendId }: SnapshotOwner,
  group: SnapshotGroupRequest & { id: string; operationId: string },
): Promise<void> {
  const { id, volumeGroupId, name, description, config, operationId } = group;
  const values = [tenantId, backendId, id, volumeGroupId, name, description, JSON.stringify(config)];
  await tx.query(INSERT, [...values, operationId]);
}

export async function setGroupDeleting(tx: Tx, tenantId: string, id: string, operationId: string): Promise<void> {
  await tx.query(SET_DELETING, [tenantId, id, operationId]);
}

/** $3 operation */
export const GROUP_READY = sql(
  'snapshot_group_ready',
  `UPDATE trivet.snapshot_group SET state = 'ready', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
/** After its members: as long as one of them is there, it is. */
export const GROUP_NOT_GONE = sql(
  'snapshot_group_not_gone',
  `UPDATE trivet.snapshot_group g
      SET state = CASE WHEN EXISTS (SELECT FROM trivet.snapshot s
                                     WHERE s.tenant_id = $1 AND s.snapshot_group_id = $2 AND s.state = 'ready')
                       THEN 'ready' ELSE 'gone' END,
          active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
export const GROUP_GONE = sql(
  'snapshot_group_gone',
  `UPDATE trivet.snapshot_group SET state = 'gone', active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

export const snapshotGroupNotFound = (id: string): StorageError =>
  new StorageError('not_found', `Snapshot group with id ${id} not found.`, { resource: `snapshot group ${id}` });

/** Its time is that of the cut, which its snapshots share; those deleted since are not shown. */
export const snapshotGroupView = (row: SnapshotGroupRow, snapshots: readonly SnapshotRow[]): SnapshotGroupView => {
  const views = snapshots.filter(({ state }) => state === 'ready').map(snapshotView);
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    volumeGroupId: row.volumeGroupId,
    volumeGroupName: row.volumeGroupName,
    config: row.config,
    createdAt: views[0]?.createdAt ?? row.createdAt,
    snapshots: views,
  };
};
