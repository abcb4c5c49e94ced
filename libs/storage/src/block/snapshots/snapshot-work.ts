import type { ImageRef, StageRef } from '#backends/block-backend';
import type { DaemonRef } from '#backends/exporter';
import { failureOf } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { type Statement, sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { daemonAt, type PortalSets } from '#storage/block/pools/pool-daemons';
import { snapshotImage } from '#storage/block/snapshots/snapshot-store';
import { volumeImage } from '#storage/block/volumes/volume-store';

/** One image that is to be cut, as Postgres has it now. */
export interface Cut {
  image: ImageRef;
  source: ImageRef;
  volumeName: string;
  published: boolean;
  /** Who writes to the source. */
  daemon: DaemonRef;
}

interface CutRow {
  id: string;
  pool: string;
  folder: string;
  volumeId: string;
  volumeName: string;
  volumeState: string;
  volumePool: string;
  volumeFolder: string;
  condition: { message: string } | null;
  published: boolean;
  portals: string[] | null;
  portalSets: PortalSets | null;
  daemon: number | null;
}

/** A statement about the operation's snapshot, or about those of its group. $1 tenant, $2 the resource. */
export const ofResource = (name: string, text: (which: string) => string) => {
  const one = sql(name, text('s.id = $2'));
  const group = sql(`${name}_of_group`, text("s.snapshot_group_id = $2 AND s.state <> 'gone'"));
  return ({ resourceKind }: LeasedOperation): Statement => (resourceKind === 'snapshot' ? one : group);
};

const READ = ofResource(
  'snapshot_cuts',
  which => `SELECT s.id, s.pool, s.folder, v.id AS "volumeId", v.name AS "volumeName", v.state AS "volumeState",
          v.pool AS "volumePool", v.folder AS "volumeFolder", v.condition, p.portals, p.portal_sets AS "portalSets", (v.target ->> 'daemon')::int AS daemon,
          EXISTS (SELECT FROM trivet.publication x WHERE x.tenant_id = $1 AND x.volume_id = v.id) AS published
     FROM trivet.snapshot s
     JOIN trivet.volume v ON v.tenant_id = s.tenant_id AND v.id = s.volume_id
     LEFT JOIN trivet.pool p ON p.tenant_id = v.tenant_id AND p.backend_id = v.backend_id AND p.name = v.pool
    WHERE s.tenant_id = $1 AND ${which}
    ORDER BY v.id`,
);

/**
 * What the operation is to cut. The volumes' `images` slots are ours: none can be deleted or grown meanwhile, but each may
 * have been before. For undoing only the names count.
 */
export async function readCuts(tx: Tx, operation: LeasedOperation): Promise<Cut[]> {
  const { tenantId, resourceId } = operation;
  const rows = await tx.query<CutRow>(READ(operation), [tenantId, resourceId]);
  const undoing = failureOf(operation) !== undefined;
  if (!undoing) for (const row of rows) requireUsable(row);
  return rows.map(row => ({
    image: snapshotImage(row),
    source: volumeImage({ id: row.volumeId, pool: row.volumePool, folder: row.volumeFolder }),
    volumeName: row.volumeName,
    published: row.published,
    daemon: daemonAt(
      tenantId,
      { pool: row.volumePool, portals: row.portals ?? [], portalSets: row.portalSets ?? [] },
      row.daemon ?? 0,
    ),
  }));
}

function requireUsable({ volumeName, volumeState, condition }: CutRow): void {
  const resource = `volume ${volumeName}`;
  if (volumeState !== 'ready') throw new StorageError('not_found', `${resource} was deleted`, { resource });
  if (condition) throw new StorageError('failed_precondition', `${resource}: ${condition.message}`, { resource });
}

export const stageOf = (operation: LeasedOperation, image: ImageRef): StageRef => ({
  pool: image.pool,
  imageId: image.id,
  operationId: operation.id,
  fence: operation.hostFence,
});

/** Each daemon once. */
export const daemonsOf = (cuts: readonly Cut[]): DaemonRef[] => [
  ...new Map(cuts.map(({ daemon }) => [`${daemon.pool}/${daemon.nth}`, daemon])).values(),
];

/**
 * $4 size of the image: of whole blocks, while the volume has the size that was asked for. The number of the cut is the
 * volume's next one; hidden snapshots are in no chain (invariant C2).
 */
export const TAKEN = sql(
  'snapshot_taken',
  `WITH taken AS (
     SELECT s.id, s.volume_id, s.hidden FROM trivet.snapshot s
      WHERE s.tenant_id = $1 AND s.id = $2 AND s.active_operation = $3
   ), numbered AS (
     UPDATE trivet.volume v SET next_cut = v.next_cut + 1
       FROM taken WHERE v.tenant_id = $1 AND v.id = taken.volume_id AND NOT taken.hidden
     RETURNING v.next_cut - 1 AS cut
   )
   UPDATE trivet.snapshot s
      SET state = 'ready', active_operation = NULL, cut = (SELECT cut FROM numbered),
          size_bytes = (SELECT CASE WHEN (v.size_bytes + 511) / 512 * 512 = $4::bigint THEN v.size_bytes ELSE $4::bigint END
                          FROM trivet.volume v WHERE v.tenant_id = $1 AND v.id = taken.volume_id),
          updated_at = now(), audited_at = now()
     FROM taken WHERE s.tenant_id = $1 AND s.id = taken.id`,
);
/** The instant of the cut, by the clock that all share: written right after it was made, before it gets its name. */
export const CUT_AT = ofResource(
  'snapshot_cut_at',
  which =>
    `UPDATE trivet.snapshot s SET cut_at = now() WHERE s.tenant_id = $1 AND ${which} AND s.active_operation = $3`,
);
export const GONE = ofResource(
  'snapshot_gone',
  which => `UPDATE trivet.snapshot s SET state = 'gone', active_operation = NULL, updated_at = now()
             WHERE s.tenant_id = $1 AND ${which} AND s.active_operation = $3`,
);

/** Visible again, unless its image was given up already: what is left of that is an orphan that the audit reports. */
export const NOT_GONE = ofResource(
  'snapshot_not_gone',
  which => `UPDATE trivet.snapshot s
               SET state = CASE WHEN image_gone_at IS NULL AND size_bytes IS NOT NULL THEN 'ready' ELSE 'gone' END,
                   active_operation = NULL, updated_at = now()
             WHERE s.tenant_id = $1 AND ${which} AND s.active_operation = $3`,
);

export const resourceOf = ({ tenantId, resourceId, id }: LeasedOperation) => [tenantId, resourceId, id] as const;
