import type { ImageRef } from '#backends/block-backend';
import type { Begin } from '#operations/accepting/operations';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import type { Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { indexSlot } from '#storage/block/snapshots/index-slot';
import { giveUpImages } from '#storage/block/snapshots/kept-images';
import { removeImages } from '#storage/block/snapshots/snapshot-images';
import { ownSnapshot } from '#storage/block/snapshots/snapshot-slots';
import { resourceOf } from '#storage/block/snapshots/snapshot-work';
import { KEPT } from '#storage/block/volumes/snapshot-conditions';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface ReleaseSnapshotRequest {
  /** Also the image that the next step of the change index would begin with. */
  anchor: boolean;
  resources: readonly [volumeId: string];
}

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

/** Unlinks what deletion left, unless it is needed after all. It cannot fail, as deletion cannot. */
export const releaseSnapshot = defineOperation('snapshot.release', {
  resourceKind: 'snapshot',
  class: 'destroy',
  slots: (id, { resources: [volumeId] }: ReleaseSnapshotRequest) => [ownSnapshot(id), indexSlot(volumeId)],
  carriedOut: ({ blocks }: BlockNeeds): Handling<ImageRef[], ReleaseSnapshotRequest> => ({
    begin: (tx, operation) =>
      giveUpImages(tx, operation.tenantId, [operation.resourceId], {
        anchors: operation.request.anchor,
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
  }),
});

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
