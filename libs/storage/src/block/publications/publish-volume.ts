import { defineOperation } from '#operations/definitions/define-operation';
import { failureOf, type Handling } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import {
  applyTarget,
  type PublicationRequest,
  publicationSlots,
  rowOf,
  succeedTarget,
  type TargetNeeds,
} from '#storage/block/publications/apply-target';
import { readTarget, type TargetWork } from '#storage/block/publications/target-work';

const PUBLISHED = sql(
  'publication_applied',
  `UPDATE trivet.publication SET state = 'applied', active_operation = NULL
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3 AND state = 'wanted'`,
);
const NOT_PUBLISHED = sql(
  'publication_not_applied',
  'DELETE FROM trivet.publication WHERE tenant_id = $1 AND id = $2 AND active_operation = $3',
);

export const publishVolume = defineOperation('volume.publish', {
  resourceKind: 'publication',
  class: 'fast',
  slots: publicationSlots,
  carriedOut(needs: TargetNeeds): Handling<TargetWork, PublicationRequest> {
    const apply = applyTarget(needs, { publishes: true });
    return {
      begin: (tx, operation) =>
        readTarget(
          tx,
          needs.secrets,
          operation,
          operation.request.volumeId,
          failureOf(operation) && operation.resourceId,
        ),
      steps: [apply],
      undo: [apply],
      succeed(writer, operation, work) {
        writer.write(PUBLISHED, rowOf(operation));
        return succeedTarget(writer, operation, work);
      },
      fail(writer, operation, work) {
        writer.write(NOT_PUBLISHED, rowOf(operation));
        succeedTarget(writer, operation, work);
      },
    };
  },
});
