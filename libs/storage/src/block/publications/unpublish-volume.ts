import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import {
  applyTarget,
  type PublicationRequest,
  publicationSlots,
  rowOf,
  succeedTarget,
  type TargetNeeds,
} from '#storage/block/publications/apply-target';
import { publishVolume } from '#storage/block/publications/publish-volume';
import { readTarget, type TargetWork } from '#storage/block/publications/target-work';

const UNPUBLISHED = sql(
  'publication_gone',
  'DELETE FROM trivet.publication WHERE tenant_id = $1 AND id = $2 AND active_operation = $3',
);
const NOT_UNPUBLISHED = sql(
  'publication_not_gone',
  `WITH publication AS (
     UPDATE trivet.publication SET state = 'applied', active_operation = NULL
      WHERE tenant_id = $1 AND id = $2 AND active_operation = $3 RETURNING volume_id)
   UPDATE trivet.volume v SET applied_instance = NULL, export_version = export_version + 1, updated_at = now()
     FROM publication WHERE v.tenant_id = $1 AND v.id = publication.volume_id`,
);

export const unpublishVolume = defineOperation('volume.unpublish', {
  resourceKind: 'publication',
  class: 'fast',
  slots: publicationSlots,
  negates: () => [publishVolume],
  carriedOut: (needs: TargetNeeds): Handling<TargetWork, PublicationRequest> => ({
    begin: (tx, operation) => readTarget(tx, needs.secrets, operation, operation.request.volumeId),
    steps: [applyTarget(needs, { publishes: false })],
    succeed(writer, operation, work) {
      writer.write(UNPUBLISHED, rowOf(operation));
      return succeedTarget(writer, operation, work);
    },
    giveUp: {
      leaves: 'the volume is published to the host as before: unpublish it again at any time',
      write(writer, operation) {
        writer.write(NOT_UNPUBLISHED, rowOf(operation));
      },
    },
  }),
});
