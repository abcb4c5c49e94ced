import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import { imageBytes } from '#storage/block/volumes/image-size';
import { wholeVolume } from '#storage/block/volumes/volume-slots';
import { readVolume, rowOf, type VolumeWork } from '#storage/block/volumes/volume-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface ExpandVolumeRequest {
  /** A bigint in decimal. */
  sizeBytes: string;
}

/** Also when a deletion has come meanwhile, which waits for it: the bin keeps an image of the size that its row says. */
const GROWN = sql(
  'volume_grown',
  `UPDATE trivet.volume
      SET size_bytes = $4, growing_to = NULL, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const NOT_GROWN = sql(
  'volume_not_grown',
  `UPDATE trivet.volume SET growing_to = NULL, active_operation = nullif(active_operation, $3), updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);

/** Under I/O: hosts see the new size when they look again (invariant I3). */
export const expandVolume = defineOperation('volume.expand', {
  resourceKind: 'volume',
  class: 'fast',
  slots: (id, _: ExpandVolumeRequest) => wholeVolume(id),
  carriedOut: ({ blocks }: BlockNeeds): Handling<VolumeWork, ExpandVolumeRequest> => ({
    begin: readVolume,
    steps: [
      {
        name: 'grow',
        calls: ['growImage'],
        async run({ image, thick }, { operation, long }) {
          const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
          const size = { sizeBytes: imageBytes(BigInt(operation.request.sizeBytes)), thick };
          await long('growImage', signal => volumes.growImage(image, size, operation.hostFence, signal));
          return undefined;
        },
      },
      {
        name: 'resize',
        calls: ['resizeTarget'],
        async run({ image, target, exported }, { operation, call }) {
          if (!target || !exported) return undefined;
          const { exporter } = await blocks.open(operation.tenantId, operation.backendId);
          await call('resizeTarget', signal => exporter.resizeTarget(target, image, operation.hostFence, signal));
          return undefined;
        },
      },
    ],
    succeed(writer, operation) {
      writer.write(GROWN, [...rowOf(operation), operation.request.sizeBytes]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(NOT_GROWN, rowOf(operation));
    },
  }),
});
