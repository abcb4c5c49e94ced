import type { AppliedTarget } from '#backends/exporter';
import { failureOf, type Handler, type Step } from '#operations/handler';
import type { LeasedOperation } from '#operations/operation';
import { isStorageError, StorageError } from '#platform/errors';
import type { SecretBox } from '#platform/secrets';
import { sql } from '#platform/sql';
import { publishVolume, replayTarget, unpublishVolume } from '#storage/publications/publication-operations';
import { readTarget, type TargetWork } from '#storage/publications/target-work';
import type { BlockDirectory } from '#storage/volumes/volume-handlers';

/**
 * A target's whole state follows from the publications in Postgres, and each of these operations applies all of it: so
 * publish, unpublish, changed initiators and the replay after a restart are one step, and a repeat of it is harmless.
 */
const PUBLISHED = sql(
  'publication_applied',
  `UPDATE trivet.publication SET state = 'applied', active_operation = NULL
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3 AND state = 'wanted'`,
);
const NOT_PUBLISHED = sql(
  'publication_not_applied',
  'DELETE FROM trivet.publication WHERE tenant_id = $1 AND id = $2 AND active_operation = $3',
);
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
/** What changed since it was read makes the target stale again. */
const APPLIED = sql(
  'target_applied',
  `UPDATE trivet.volume
      SET serial_number = $3, applied_instance = CASE WHEN export_version = $5 THEN $4 END, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
const REMOVED = sql(
  'target_removed',
  `UPDATE trivet.volume
      SET applied_instance = NULL, updated_at = now(),
          condition = CASE WHEN $3::text IS NULL THEN condition
                           ELSE jsonb_build_object('type', 'lost', 'message', $3::text, 'at', now()) END
    WHERE tenant_id = $1 AND id = $2`,
);

interface Applied {
  serialNumber?: string;
  instance?: string;
}

const KINDS = [publishVolume, unpublishVolume, replayTarget];
const volumeOf = (operation: LeasedOperation): string =>
  KINDS.find(({ kind }) => kind === operation.kind)!.requestOf(operation).volumeId;

export function publicationHandlers(blocks: BlockDirectory, secrets: SecretBox): Handler[] {
  const apply: Step<TargetWork> = {
    name: 'apply',
    calls: ['ensureDaemon', 'applyTarget', 'removeTarget'],
    async run({ spec }, { operation, progress, call, long }) {
      if (!spec) {
        progress.applied = null;
        if (operation.kind !== publishVolume.kind || failureOf(operation)) return undefined;
        throw new StorageError('not_found', `Volume with id ${volumeOf(operation)} not found.`);
      }
      const { exporter } = await blocks.open(operation.tenantId, operation.backendId);
      const fence = operation.hostFence;
      // It bounds itself, and waits for a cut that has stopped the daemon.
      await long('ensureDaemon', signal => exporter.ensureDaemon(spec.daemon, signal));
      if (spec.initiators.length === 0) {
        await call('removeTarget', signal => exporter.removeTarget(spec, { force: true }, fence, signal));
        progress.applied = null;
        return undefined;
      }
      let applied: AppliedTarget;
      try {
        applied = await call('applyTarget', signal => exporter.applyTarget(spec, fence, signal));
      } catch (error) {
        // An image that is gone: data are never repaired, so its publication is withheld (F2). Any other refusal leaves
        // the hosts what they have.
        const lost =
          isStorageError(error) &&
          error.kind === 'failed_precondition' &&
          error.field === 'image' &&
          operation.kind !== publishVolume.kind;
        if (!lost) throw error;
        await call('removeTarget', signal => exporter.removeTarget(spec, { force: true }, fence, signal));
        progress.applied = null;
        progress.lost = error.message;
        return undefined;
      }
      progress.applied = { serialNumber: applied.serialNumber, instance: applied.instance };
      return undefined;
    },
  };
  const succeedTarget: Handler<TargetWork>['succeed'] = (writer, operation, { exportVersion }) => {
    const { serialNumber, instance } = (operation.progress.applied ?? {}) as Applied;
    const volume = [operation.tenantId, volumeOf(operation)];
    if (instance === undefined) writer.write(REMOVED, [...volume, operation.progress.lost ?? null]);
    else writer.write(APPLIED, [...volume, serialNumber, instance, exportVersion]);
    return undefined;
  };
  const publication = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId, operation.id];

  const publish = publishVolume.handledBy<TargetWork>({
    begin: (tx, operation) =>
      readTarget(tx, secrets, operation, volumeOf(operation), failureOf(operation) && operation.resourceId),
    steps: [apply],
    undo: [apply],
    succeed(writer, operation, work) {
      writer.write(PUBLISHED, publication(operation));
      return succeedTarget(writer, operation, work);
    },
    fail(writer, operation, work) {
      writer.write(NOT_PUBLISHED, publication(operation));
      succeedTarget(writer, operation, work);
    },
  });
  const unpublish = unpublishVolume.handledBy<TargetWork>({
    begin: (tx, operation) => readTarget(tx, secrets, operation, volumeOf(operation)),
    steps: [apply],
    succeed(writer, operation, work) {
      writer.write(UNPUBLISHED, publication(operation));
      return succeedTarget(writer, operation, work);
    },
    giveUp: {
      leaves: 'the volume is published to the host as before: unpublish it again at any time',
      write(writer, operation) {
        writer.write(NOT_UNPUBLISHED, publication(operation));
      },
    },
  });
  const replay = replayTarget.handledBy<TargetWork>({
    begin: (tx, operation) => readTarget(tx, secrets, operation, volumeOf(operation)),
    steps: [apply],
    succeed: succeedTarget,
    giveUp: {
      leaves: 'nothing has changed; as long as the target is not as it should be, it is applied again by itself',
      write: () => {},
    },
  });
  return [publish, unpublish, replay];
}
