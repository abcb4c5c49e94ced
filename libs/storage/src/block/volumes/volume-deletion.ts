import type { Asked } from '#operations/accepting/askable';
import { counted } from '#platform/counted';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import type { DeleteVolumeRequest } from '#storage/block/volumes/delete-volume';
import { HOLDS_VOLUME } from '#storage/block/volumes/snapshot-conditions';

export const UNPUBLISH_ALL = sql(
  'volume_unpublish_all',
  `UPDATE trivet.publication SET state = 'removing' WHERE tenant_id = $1 AND volume_id = $2`,
);
const DEPENDANTS = sql(
  'volume_dependants',
  `SELECT EXISTS (SELECT FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2) AS published,
          (SELECT count(*)::int FROM trivet.snapshot s
            WHERE tenant_id = $1 AND volume_id = $2 AND state <> 'gone' AND NOT hidden AND ${HOLDS_VOLUME}) AS snapshots,
          (SELECT count(*)::int FROM trivet.snapshot
            WHERE tenant_id = $1 AND volume_id = $2 AND active_operation IS NOT NULL AND state <> 'gone') AS busy,
          (SELECT count(*)::int FROM trivet.volume
            WHERE tenant_id = $1 AND parent_volume_id = $2 AND state = 'creating') AS copying`,
);

interface Dependants {
  published: boolean;
  snapshots: number;
  busy: number;
  copying: number;
}

/** In a statement of its own: what the locking one saw may be older than the lock. */
export async function checkDependants(
  tx: Tx,
  tenantId: string,
  row: { id: string; name: string },
  force: boolean,
): Promise<void> {
  const [found] = await tx.query<Dependants>(DEPENDANTS, [tenantId, row.id]);
  const { published, snapshots, busy, copying } = found!;
  const resource = `volume ${row.name}`;
  if (published && !force)
    throw new StorageError('failed_precondition', 'Cannot delete a published volume', {
      resource,
      field: 'published',
    });
  if (snapshots > 0 && !force)
    throw new StorageError(
      'failed_precondition',
      `${resource} has ${counted(snapshots, 'snapshot')}, which must go first`,
      {
        resource,
        field: 'snapshots',
      },
    );
  if (busy + copying > 0)
    throw new StorageError('aborted', `${resource} is being cloned, or a snapshot of it is under way; try again`, {
      resource,
    });
}

export const deletionOf = ({ id, name }: { id: string; name: string }, bin: boolean): Asked<DeleteVolumeRequest> => ({
  resourceId: id,
  resourceName: name,
  request: { bin },
});
