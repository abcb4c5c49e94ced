import { noting } from '#operations/accepting/change-observer';
import { counted } from '#platform/counted';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, VolumeConfig, VolumeGroupRequest, VolumeGroupView } from '#storage/block/block-storage';
import { requireTemplate } from '#storage/block/protection/protect';
import { canonical } from '#storage/shared/desired-state';

interface GroupRow {
  id: string;
  name: string;
  description: string;
  config: VolumeConfig;
  createdAt: Date;
  volumes: { id: string; name: string }[];
}

const ROW = `SELECT g.id, g.name, g.description, g.config, g.created_at AS "createdAt",
  ARRAY(SELECT jsonb_build_object('id', v.id, 'name', v.name) FROM trivet.volume v
         WHERE v.tenant_id = g.tenant_id AND v.volume_group_id = g.id AND v.state IN ('creating', 'ready')
         ORDER BY v.name) AS volumes
  FROM trivet.volume_group g WHERE g.tenant_id = $1 AND g.backend_id = $2`;
const LIST = sql('volume_group_list', `${ROW} ORDER BY g.name`);
const BY_NAME = sql('volume_group_by_name', `${ROW} AND g.name = $3`);
const BY_ID = sql('volume_group_by_id', `${ROW} AND g.id = $3`);
const INSERT = sql(
  'volume_group_insert',
  `INSERT INTO trivet.volume_group (tenant_id, backend_id, id, name, description, config, protection_template)
   VALUES ($1, $2, $3, $4, $5, $6, $7)
   ON CONFLICT (tenant_id, backend_id, name) DO NOTHING
   RETURNING id`,
);
/** Against new members and new snapshot groups, which take it SHARE. */
const LOCK = sql(
  'volume_group_lock',
  'SELECT id, name FROM trivet.volume_group WHERE tenant_id = $1 AND backend_id = $2 AND id = $3 FOR UPDATE',
);
const HOLDERS = sql(
  'volume_group_holders',
  `SELECT (SELECT count(*)::int FROM trivet.volume
            WHERE tenant_id = $1 AND volume_group_id = $2 AND state NOT IN ('binned', 'gone')) AS volumes,
          (SELECT count(*)::int FROM trivet.snapshot_group
            WHERE tenant_id = $1 AND volume_group_id = $2 AND state <> 'gone') AS "snapshotGroups"`,
);
/** Rows of what is gone still refer to it. */
const LET_GO = [
  sql(
    'volume_group_let_volumes_go',
    'UPDATE trivet.volume SET volume_group_id = NULL WHERE tenant_id = $1 AND volume_group_id = $2',
  ),
  sql(
    'volume_group_let_snapshots_go',
    `UPDATE trivet.snapshot s SET snapshot_group_id = NULL FROM trivet.snapshot_group g
      WHERE s.tenant_id = $1 AND g.tenant_id = $1 AND g.volume_group_id = $2 AND s.snapshot_group_id = g.id`,
  ),
  sql(
    'volume_group_forget_snapshot_groups',
    'DELETE FROM trivet.snapshot_group WHERE tenant_id = $1 AND volume_group_id = $2',
  ),
  sql('volume_group_delete', 'DELETE FROM trivet.volume_group WHERE tenant_id = $1 AND id = $2'),
];

/** Volumes that are cut together. They have nothing at the backend: each change is one transaction. */
export class VolumeGroups {
  constructor(private readonly parts: Pick<BlockDependencies, 'database'>) {}

  list(caller: BlockCaller, { name }: { name?: string }): Promise<VolumeGroupView[]> {
    const { tenantId, backendId } = caller;
    return this.parts.database.withTenant(tenantId, tx =>
      name === undefined
        ? tx.query<GroupRow>(LIST, [tenantId, backendId])
        : tx.query<GroupRow>(BY_NAME, [tenantId, backendId, name]),
    );
  }

  async get(caller: BlockCaller, groupId: string): Promise<VolumeGroupView> {
    const { tenantId, backendId } = caller;
    const [row] = isUuid(groupId)
      ? await this.parts.database.withTenant(tenantId, tx => tx.query<GroupRow>(BY_ID, [tenantId, backendId, groupId]))
      : [];
    if (!row) throw groupNotFound(groupId);
    return row;
  }

  /** The name is the key: the same group again is answered, another description or config is another group. */
  create(caller: BlockCaller, request: VolumeGroupRequest): Promise<VolumeGroupView> {
    const { tenantId, backendId } = caller;
    const { name, description, config, protectionTemplate } = request;
    const resource = `volume group ${name}`;
    return this.parts.database.withTenant(tenantId, async tx => {
      if (protectionTemplate !== undefined) await requireTemplate(tx, tenantId, protectionTemplate);
      const values = [tenantId, backendId, uuidv7(), name, description, JSON.stringify(config)];
      const made = await tx.query(INSERT, [...values, protectionTemplate ?? null]);
      const [row] = await tx.query<GroupRow>(BY_NAME, [tenantId, backendId, name]);
      if (!row) throw new StorageError('aborted', `${resource} is being deleted; try again`, { resource });
      if (row.description !== description || canonical(row.config) !== canonical(config))
        throw new StorageError('already_exists', `${resource} exists with another description or config`, { resource });
      const change = { kind: 'volume_group.create', resourceId: row.id, resourceName: name, after: request };
      if (made.length > 0) await tx.commit(...noting(caller.observer, change));
      return row;
    });
  }

  delete(caller: BlockCaller, groupId: string): Promise<void> {
    const { tenantId } = caller;
    return this.parts.database.withTenant(tenantId, async tx => {
      const { name } = await lockVolumeGroup(tx, caller, groupId);
      const resource = `volume group ${name}`;
      const [held] = await tx.query<{ volumes: number; snapshotGroups: number }>(HOLDERS, [tenantId, groupId]);
      if (held!.volumes > 0)
        throw new StorageError(
          'failed_precondition',
          `${resource} has ${counted(held!.volumes, 'volume')}, to be taken out first`,
          {
            resource,
            field: 'volumes',
          },
        );
      if (held!.snapshotGroups > 0)
        throw new StorageError(
          'failed_precondition',
          `${resource} has ${counted(held!.snapshotGroups, 'snapshot group')}, which must go first`,
          { resource, field: 'snapshotGroups' },
        );
      const change = { kind: 'volume_group.delete', resourceId: groupId, resourceName: name };
      await tx.commit(
        ...LET_GO.map(statement => [statement, [tenantId, groupId]] as const),
        ...noting(caller.observer, change),
      );
    });
  }
}

export async function lockVolumeGroup(
  tx: Tx,
  { tenantId, backendId }: Pick<BlockCaller, 'tenantId' | 'backendId'>,
  groupId: string,
): Promise<{ id: string; name: string }> {
  const [row] = isUuid(groupId)
    ? await tx.query<{ id: string; name: string }>(LOCK, [tenantId, backendId, groupId])
    : [];
  if (!row) throw groupNotFound(groupId);
  return row;
}

const groupNotFound = (groupId: string): StorageError =>
  new StorageError('not_found', `Volume group with id ${groupId} not found.`, { resource: `volume group ${groupId}` });
