import type { ImageRef, StageRef } from '#backends/block-backend';
import type { TargetRef } from '#backends/exporter';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { daemonOf } from '#storage/block/pools/pool-store';
import { KEPT } from '#storage/block/volumes/snapshot-conditions';
import type { TargetIdentity } from '#storage/block/volumes/volume-store';
import { volumeImage } from '#storage/block/volumes/volume-store';

/**
 * Images carry the incarnation, so that who finds one of that name knows whose it is. Content is made under a temporary
 * name of this operation and fence, and given its name in one step that never replaces: a crash leaves temporaries, which
 * the repeat drops, or the whole image, which it finds (invariant F1).
 */
export interface VolumeWork {
  image: ImageRef;
  sizeBytes: bigint;
  thick: boolean;
  /** Present when it was ever published. */
  target?: TargetRef;
  snapshots: ImageRef[];
  exported: boolean;
}

const READ = sql(
  'volume_work',
  `SELECT id, pool, folder, size_bytes::text AS "sizeBytes", thick, tid, target,
          EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.state <> 'removing') AS exported
     FROM trivet.volume WHERE tenant_id = $1 AND id = $2`,
);
/** Those of deleted snapshots too that were kept for the next cut. */
const READ_SNAPSHOTS = sql(
  'volume_work_snapshots',
  `SELECT s.id, s.pool, s.folder FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.volume_id = $2 AND (s.state <> 'gone' OR ${KEPT})`,
);

interface WorkRow {
  id: string;
  pool: string;
  folder: string;
  sizeBytes: string;
  thick: boolean;
  tid: number | null;
  target: TargetIdentity | null;
  exported: boolean;
}

export async function readVolume(tx: Tx, { tenantId, backendId, resourceId }: LeasedOperation): Promise<VolumeWork> {
  const [row] = await tx.query<WorkRow>(READ, [tenantId, resourceId]);
  if (!row) throw new StorageError('internal', `volume ${resourceId} has no row`, { retry: 'person' });
  const snapshots = await tx.query<{ id: string; pool: string; folder: string }>(READ_SNAPSHOTS, [
    tenantId,
    resourceId,
  ]);
  const daemon = row.tid === null ? undefined : await daemonOf(tx, tenantId, backendId, row.pool, row.target?.daemon);
  return {
    image: volumeImage(row),
    sizeBytes: BigInt(row.sizeBytes),
    thick: row.thick,
    target: daemon && { daemon, tid: row.tid!, iqn: row.target!.name },
    snapshots: snapshots.map(snapshot => ({ ...snapshot, kind: 'snapshot' as const })),
    exported: row.exported,
  };
}

export const stageOf = (operation: LeasedOperation, image: ImageRef): StageRef => ({
  pool: image.pool,
  imageId: image.id,
  operationId: operation.id,
  fence: operation.hostFence,
});

export const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId, operation.id] as const;
