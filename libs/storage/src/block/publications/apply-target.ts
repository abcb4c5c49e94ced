import type { AppliedTarget } from '#backends/exporter';
import type { Slot } from '#operations/accepting/accept';
import { failureOf, type Handling, type Step } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { SecretBox } from '#platform/crypto/secrets';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import type { TargetWork } from '#storage/block/publications/target-work';
import { VOLUME_SLOTS } from '#storage/block/volumes/volume-slots';
import type { BlockNeeds } from '#storage/shared/backend-directory';

/**
 * A target's whole state follows from the publications in Postgres, and each of these operations applies all of it: so
 * publish, unpublish, changed initiators and the replay after a restart are one step, and a repeat of it is harmless.
 */
export interface TargetRequest {
  volumeId: string;
}

export interface PublicationRequest extends TargetRequest {
  resources: readonly [volumeId: string];
}

export interface TargetNeeds extends BlockNeeds {
  secrets: SecretBox;
}

export const publicationSlots = (publicationId: string, { volumeId }: PublicationRequest): Slot[] => [
  { resource: publicationId, slot: 'lifecycle', own: true },
  { resource: volumeId, slot: VOLUME_SLOTS.exports, own: false },
];

/** What changed since it was read makes the target stale again. */
const APPLIED = sql(
  'target_applied',
  `UPDATE trivet.volume
      SET serial_number = $3, applied_instance = CASE WHEN export_version = $5 THEN $4 END, updated_at = now()
    WHERE tenant_id = $1 AND id = $2`,
);
/** Instead of a run of the daemon: no host has the volume, so that there is no target to apply. A run has no such name. */
export const NOWHERE = '';
const REMOVED = sql(
  'target_removed',
  `UPDATE trivet.volume v
      SET applied_instance = CASE WHEN v.export_version = $4 AND NOT EXISTS (SELECT FROM trivet.publication p
                                                    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.state = 'applied')
                                  THEN '${NOWHERE}' END,
          updated_at = now(),
          condition = CASE WHEN $3::text IS NULL THEN condition
                           ELSE jsonb_build_object('type', 'lost', 'message', $3::text, 'at', now()) END
    WHERE tenant_id = $1 AND id = $2`,
);

/** A daemon that comes into being later does not get it back: this one would keep the target. */
const MOVED = sql(
  'target_moved',
  "UPDATE trivet.volume SET target = target - 'daemon' WHERE tenant_id = $1 AND id = $2",
);

interface Applied {
  serialNumber?: string;
  instance?: string;
}

/** @param publishes a host waits for it: what forbids it must be told, and nothing that others have may end */
export const applyTarget = (
  { blocks }: BlockNeeds,
  { publishes }: { publishes: boolean },
): Step<TargetWork, TargetRequest> => ({
  name: 'apply',
  calls: ['ensureDaemon', 'applyTarget', 'removeTarget'],
  async run({ spec }, { operation, progress, call, long }) {
    if (!spec) {
      progress.applied = null;
      if (!publishes || failureOf(operation)) return undefined;
      throw new StorageError('not_found', `Volume with id ${operation.request.volumeId} not found.`);
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
        isStorageError(error) && error.kind === 'failed_precondition' && error.field === 'image' && !publishes;
      if (!lost) throw publishes ? error : untilThereIsRoom(error);
      await call('removeTarget', signal => exporter.removeTarget(spec, { force: true }, fence, signal));
      progress.applied = null;
      progress.lost = error.message;
      return undefined;
    }
    progress.applied = { serialNumber: applied.serialNumber, instance: applied.instance };
    return undefined;
  },
});

/** Nobody is told of a target that is applied again: it gets its place when there is one, and no person has to ask for that. */
const untilThereIsRoom = (error: unknown): unknown =>
  isStorageError(error) && error.kind === 'resource_exhausted'
    ? new StorageError(error.kind, error.message, { ...error, retry: 'later', cause: error })
    : error;

/** What became of the target, for the end of the operation. */
export const succeedTarget: Handling<TargetWork, TargetRequest>['succeed'] = (writer, operation, work) => {
  const { serialNumber, instance } = (operation.progress.applied ?? {}) as Applied;
  const { exportVersion } = work;
  const volume = [operation.tenantId, operation.request.volumeId];
  if (work.isMoved) writer.write(MOVED, volume);
  if (instance === undefined) writer.write(REMOVED, [...volume, operation.progress.lost ?? null, exportVersion]);
  else writer.write(APPLIED, [...volume, serialNumber, instance, exportVersion]);
  return undefined;
};

export const rowOf = ({ tenantId, resourceId, id }: LeasedOperation) => [tenantId, resourceId, id] as const;
