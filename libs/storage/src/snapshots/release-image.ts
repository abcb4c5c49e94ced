import type { ImageRef } from '#backends/block-backend';
import type { Handler } from '#operations/handler';
import type { Tx } from '#platform/database';
import { sql } from '#platform/sql';
import type { Begin } from '#storage/block-parts';
import { giveUpImages, KEPT } from '#storage/snapshots/kept-images';
import { removeImages } from '#storage/snapshots/snapshot-handlers';
import { releaseSnapshot } from '#storage/snapshots/snapshot-operations';
import { resourceOf } from '#storage/snapshots/snapshot-work';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

const CLAIM = sql(
  'snapshot_release_claim',
  `UPDATE trivet.snapshot s SET active_operation = $3
    WHERE s.tenant_id = $1 AND s.id = $2 AND ${KEPT} AND s.active_operation IS NULL
   RETURNING s.name, s.volume_id AS "volumeId"`,
);
const RELEASED = sql(
  'snapshot_released',
  `UPDATE trivet.snapshot SET active_operation = NULL WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

/**
 * Begins `snapshot.release`, which ends the transaction, for the image of a deleted snapshot; undefined when it is gone or
 * going.
 * @param anchor although the volume's next cut needs it
 */
export async function beginRelease(
  tx: Tx,
  begin: Begin,
  { tenantId, operationId }: { tenantId: string; operationId: string },
  snapshotId: string,
  { anchor }: { anchor: boolean },
): Promise<{ name: string } | undefined> {
  const [row] = await tx.query<{ name: string; volumeId: string }>(CLAIM, [tenantId, snapshotId, operationId]);
  if (!row) return undefined;
  const request = { anchor, resources: [row.volumeId] as const };
  await begin(releaseSnapshot, { resourceId: snapshotId, resourceName: row.name, request });
  return row;
}

/** Unlinks what deletion left, unless it is needed after all. It cannot fail, as deletion cannot. */
export function releaseImageHandler(blocks: BlockDirectory): Handler {
  return releaseSnapshot.handledBy<ImageRef[]>({
    begin: (tx, operation) =>
      giveUpImages(tx, operation.tenantId, [operation.resourceId], {
        anchors: releaseSnapshot.requestOf(operation).anchor,
      }),
    steps: [removeImages(blocks, images => images)],
    succeed(writer, operation) {
      writer.write(RELEASED, resourceOf(operation));
      return undefined;
    },
    giveUp: {
      leaves: 'the snapshot was deleted before; an image that is left in its pool is reported by the audit',
      write(writer, operation) {
        writer.write(RELEASED, resourceOf(operation));
      },
    },
  });
}
