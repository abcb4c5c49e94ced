import { requireSuccess, type Submitted, shownAfter } from '#operations/accepting/operations';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid, uuidv7 } from '#platform/uuid';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller, SnapshotGroupRequest, SnapshotGroupView } from '#storage/block/block-storage';
import { createSnapshotGroup } from '#storage/block/groups/create-snapshot-group';
import { deleteSnapshotGroup } from '#storage/block/groups/delete-snapshot-group';
import {
  findSnapshotGroup,
  insertSnapshotGroup,
  listSnapshotGroups,
  lockSnapshotGroup,
  lockSnapshotGroupNamed,
  setGroupDeleting,
  snapshotGroupNotFound,
  snapshotGroupView,
} from '#storage/block/groups/snapshot-group-store';
import { lockVolumeGroup } from '#storage/block/groups/volume-groups';
import { requireRoom } from '#storage/block/pools/pool-capacity';
import { requireOneHost } from '#storage/block/pools/pool-homes';
import { requireDeletable } from '#storage/block/snapshots/delete-snapshot';
import {
  findSnapshotsOfGroup,
  insertSnapshot,
  lockSnapshot,
  lockSnapshotsOfGroup,
  setSnapshotStates,
} from '#storage/block/snapshots/snapshot-store';
import { lockUsableVolume, type VolumeRow } from '#storage/block/volumes/volume-store';

const MEMBERS = sql(
  'snapshot_group_members',
  `SELECT id FROM trivet.volume
    WHERE tenant_id = $1 AND volume_group_id = $2 AND state IN ('creating', 'ready') ORDER BY id`,
);

/** Snapshots of all volumes of a group as of one instant: what is accepted, and what is answered without an operation. */
export class SnapshotGroups {
  constructor(private readonly parts: BlockDependencies) {}

  list(caller: BlockCaller, { volumeGroupId }: { volumeGroupId: string }): Promise<SnapshotGroupView[]> {
    return this.parts.database.withTenant(caller.tenantId, async tx => {
      const rows = isUuid(volumeGroupId) ? await listSnapshotGroups(tx, caller, volumeGroupId) : [];
      const views: SnapshotGroupView[] = [];
      for (const row of rows) views.push(snapshotGroupView(row, await findSnapshotsOfGroup(tx, caller, row.id)));
      return views;
    });
  }

  get(caller: BlockCaller, groupId: string): Promise<SnapshotGroupView> {
    return this.parts.database.withTenant(caller.tenantId, async tx => {
      const row = await findSnapshotGroup(tx, caller, groupId);
      if (row?.state !== 'ready') throw snapshotGroupNotFound(groupId);
      return snapshotGroupView(row, await findSnapshotsOfGroup(tx, caller, row.id));
    });
  }

  async create(caller: BlockCaller, request: SnapshotGroupRequest): Promise<Submitted<SnapshotGroupView>> {
    const resource = `snapshot group ${request.name}`;
    const { value: id, operation } = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const volumeGroup = await lockVolumeGroup(tx, caller, request.volumeGroupId);
      const existing = await lockSnapshotGroupNamed(tx, caller, request);
      if (existing?.state === 'deleting')
        throw new StorageError('aborted', `${resource} is being deleted; try again when it is gone`, { resource });
      if (existing) return { value: existing.id, join: existing.activeOperation ?? undefined };
      const volumes = await usableMembers(tx, caller, volumeGroup);
      const pools = volumes.map(volume => volume.pool);
      await requireOneHost(tx, caller, pools);
      for (const pool of new Set(pools)) await requireRoom(tx, caller, pool, 'more');
      const id = uuidv7();
      await insertSnapshotGroup(tx, caller, { ...request, id, operationId });
      const { description } = request;
      for (const { id: volumeId } of volumes)
        await insertSnapshot(tx, caller, {
          id: uuidv7(),
          volumeId,
          name: await freeName(tx, caller, volumeId, request.name, id),
          hidden: false,
          description,
          config: {},
          snapshotGroupId: id,
          operationId,
        });
      await begin(createSnapshotGroup, {
        resourceId: id,
        resourceName: request.name,
        request: { resources: volumes.map(volume => volume.id) },
      });
      return { value: id };
    });
    requireSuccess(operation, resource);
    return shownAfter(operation, () => this.get(caller, id));
  }

  /** With its snapshots, all or none. */
  async delete(caller: BlockCaller, groupId: string): Promise<Submitted<void>> {
    const { tenantId } = caller;
    const submitted = await this.parts.operations.submit(caller, async (tx, begin, operationId) => {
      const row = await lockSnapshotGroup(tx, caller, groupId);
      if (!row) throw snapshotGroupNotFound(groupId);
      if (row.state === 'deleting') return { value: undefined, join: row.activeOperation ?? undefined };
      const snapshots = await lockSnapshotsOfGroup(tx, caller, groupId);
      await requireDeletable(tx, tenantId, snapshots);
      await setGroupDeleting(tx, tenantId, groupId, operationId);
      const seen = snapshots.filter(({ state }) => state !== 'deleting').map(({ id }) => id);
      await setSnapshotStates(tx, tenantId, seen, 'deleting', operationId);
      const resources = snapshots.map(({ id }) => id);
      await begin(deleteSnapshotGroup, { resourceId: groupId, resourceName: row.name, request: { resources } });
      return { value: undefined };
    });
    requireSuccess(submitted.operation, `snapshot group ${groupId}`);
    return submitted;
  }
}

async function usableMembers(tx: Tx, caller: BlockCaller, group: { id: string; name: string }): Promise<VolumeRow[]> {
  const members = await tx.query<{ id: string }>(MEMBERS, [caller.tenantId, group.id]);
  const resource = `volume group ${group.name}`;
  if (members.length === 0)
    throw new StorageError('failed_precondition', `${resource} has no volumes`, { resource, field: 'volumeGroupId' });
  const volumes: VolumeRow[] = [];
  for (const { id } of members) volumes.push(await lockUsableVolume(tx, caller, id));
  return volumes;
}

/** The group's name, as the specification shows it; where the volume has a snapshot of that name, with a part of the id. */
async function freeName(tx: Tx, caller: BlockCaller, volumeId: string, name: string, groupId: string): Promise<string> {
  const taken = await lockSnapshot(tx, caller, { volumeId, name });
  return taken ? `${name}-${groupId}` : name;
}
