import type { BlockCapabilities } from '#backends/block-backend';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { BlockCaller, VolumeChanges } from '#storage/block/block-storage';
import { protect, protectByGroup } from '#storage/block/protection/protect';
import { requireOneHost } from '#storage/block/volumes/one-host';
import { isOfOneHost } from '#storage/block/volumes/stored-config';
import { checkLimits } from '#storage/block/volumes/volume-checks';
import type { VolumeRow } from '#storage/block/volumes/volume-store';

const GROUP = sql(
  'volume_group_exists',
  'SELECT FROM trivet.volume_group WHERE tenant_id = $1 AND backend_id = $2 AND id = $3 FOR SHARE',
);
const EDIT = sql(
  'volume_edit',
  `UPDATE trivet.volume
      SET description = coalesce($3, description), destroy_on_delete = coalesce($4, destroy_on_delete),
          config = config || $5, volume_group_id = CASE WHEN $6 THEN $7 ELSE volume_group_id END, updated_at = now()
    WHERE tenant_id = $1 AND id = $2
      AND (description, destroy_on_delete, config, volume_group_id) IS DISTINCT FROM
          (coalesce($3, description), coalesce($4, destroy_on_delete), config || $5,
           CASE WHEN $6 THEN $7 ELSE volume_group_id END)
   RETURNING id`,
);

/** Everything of a change but the size. Needs the volume's row. False: it is as it was. */
export async function editVolume(
  tx: Tx,
  caller: BlockCaller,
  capabilities: BlockCapabilities,
  row: Pick<VolumeRow, 'id' | 'name'>,
  changes: VolumeChanges,
): Promise<boolean> {
  const { volumeGroupId, protectionTemplate } = changes;
  checkLimits(changes, capabilities);
  if (changes.config && isOfOneHost(changes.config)) await requireOneHost(tx, caller.tenantId, row);
  if (volumeGroupId) await requireGroup(tx, caller, volumeGroupId);
  const isProtected =
    protectionTemplate !== undefined && (await protect(tx, caller.tenantId, row.id, protectionTemplate));
  const edited = await tx.query(EDIT, [
    caller.tenantId,
    row.id,
    changes.description ?? null,
    changes.destroyOnDelete ?? null,
    JSON.stringify(changes.config ?? {}),
    volumeGroupId !== undefined,
    volumeGroupId ?? null,
  ]);
  const follows = volumeGroupId !== undefined || protectionTemplate === null;
  const isCovered = follows && (await protectByGroup(tx, caller.tenantId, row.id));
  return isProtected || edited.length > 0 || isCovered;
}

export async function requireGroup(tx: Tx, caller: BlockCaller, groupId: string): Promise<void> {
  const rows = isUuid(groupId) ? await tx.query(GROUP, [caller.tenantId, caller.backendId, groupId]) : [];
  if (rows.length === 0)
    throw new StorageError('not_found', `Volume group with id ${groupId} not found.`, { field: 'volumeGroupId' });
}
