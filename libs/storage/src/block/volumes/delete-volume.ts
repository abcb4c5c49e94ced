import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import { cloneVolume } from '#storage/block/volumes/clone-volume';
import { createVolume } from '#storage/block/volumes/create-volume';
import { expandVolume } from '#storage/block/volumes/expand-volume';
import { REPLAY, wholeVolume } from '#storage/block/volumes/volume-slots';
import { readVolume, rowOf, type VolumeWork } from '#storage/block/volumes/volume-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface DeleteVolumeRequest {
  /** Its image is kept for a while. */
  bin: boolean;
}

export interface RecycleTime {
  /** How long the recycle bin keeps an image. */
  recycleMs: number;
}

const WITHOUT_PUBLICATIONS = sql(
  'volume_without_publications',
  'DELETE FROM trivet.publication WHERE tenant_id = $1 AND volume_id = $2',
);
const SNAPSHOTS_GONE = sql(
  'volume_snapshots_gone',
  `UPDATE trivet.snapshot
      SET state = 'gone', active_operation = NULL, cut = NULL, image_gone_at = coalesce(image_gone_at, now()),
          updated_at = now()
    WHERE tenant_id = $1 AND volume_id = $2 AND (state <> 'gone' OR cut IS NOT NULL)`,
);
const ENDED = sql(
  'volume_ended',
  `UPDATE trivet.volume
      SET state = CASE WHEN $4 THEN 'binned' ELSE 'gone' END,
          binned_until = CASE WHEN $4 THEN now() + $5::float8 * interval '1 ms' END,
          active_operation = NULL, growing_to = NULL, volume_group_id = NULL, tid = NULL, target = NULL, serial_number = NULL, applied_instance = NULL,
          export_version = export_version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
/** Withheld until the audit has found its image whole; back into the bin if it came from there. */
const NOT_ENDED = sql(
  'volume_not_ended',
  `UPDATE trivet.volume
      SET state = CASE WHEN binned_until IS NULL THEN 'ready' ELSE 'binned' END, active_operation = NULL, growing_to = NULL,
          applied_instance = NULL, export_version = export_version + 1, updated_at = now(),
          condition = jsonb_build_object('type', 'lost', 'at', now(),
            'message', 'its deletion was given up half-way: it is withheld until the audit has found its image')
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const RELEASE_TARGET = sql('volume_release_target', 'SELECT trivet.release_target_id($1)');

/**
 * Also of what leaves the recycle bin. Ends sessions and target, then removes the snapshots' images, then its own, unless
 * the recycle bin keeps that. It cannot fail: what cannot be removed waits for a person. An expansion is waited for when
 * the image is to be kept: its size must be what the row says.
 */
export const deleteVolume = defineOperation('volume.delete', {
  resourceKind: 'volume',
  class: 'destroy',
  slots: (id, _: DeleteVolumeRequest) => wholeVolume(id),
  negates: ({ bin }) => [createVolume, cloneVolume, REPLAY, ...(bin ? [] : [expandVolume])],
  carriedOut: ({ blocks, recycleMs }: BlockNeeds & RecycleTime): Handling<VolumeWork, DeleteVolumeRequest> => ({
    begin: readVolume,
    steps: [
      {
        name: 'unexport',
        calls: ['removeTarget'],
        async run({ target }, { operation, call }) {
          if (!target) return undefined;
          const { exporter } = await blocks.open(operation.tenantId, operation.backendId);
          await call('removeTarget', signal =>
            exporter.removeTarget(target, { force: true }, operation.hostFence, signal),
          );
          return undefined;
        },
      },
      {
        name: 'snapshots',
        calls: ['removeSnapshot'],
        async run({ snapshots }, { operation, long }) {
          const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
          for (const snapshot of snapshots)
            await long('removeSnapshot', signal => volumes.removeImage(snapshot, operation.hostFence, signal));
          return undefined;
        },
      },
      {
        name: 'image',
        calls: ['discardStages', 'removeImage'],
        async run({ image }, { operation, call, long }) {
          if (operation.request.bin) return undefined;
          const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
          await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
          await long('removeImage', signal => volumes.removeImage(image, operation.hostFence, signal));
          return undefined;
        },
      },
    ],
    succeed(writer, operation) {
      const { tenantId, resourceId } = operation;
      writer.write(WITHOUT_PUBLICATIONS, [tenantId, resourceId]);
      writer.write(SNAPSHOTS_GONE, [tenantId, resourceId]);
      writer.write(RELEASE_TARGET, [resourceId]);
      writer.write(ENDED, [...rowOf(operation), operation.request.bin, recycleMs]);
      return undefined;
    },
    giveUp: {
      leaves:
        'the volume is there again, published to nobody, and withheld until the audit has found its image whole; one of the recycle bin is back in the bin. Its snapshots may have lost their images. Delete it again at any time',
      write(writer, operation) {
        writer.write(WITHOUT_PUBLICATIONS, [operation.tenantId, operation.resourceId]);
        writer.write(NOT_ENDED, rowOf(operation));
      },
    },
  }),
});
