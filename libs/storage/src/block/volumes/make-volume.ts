import type { ImageRef, StageContent } from '#backends/block-backend';
import type { Handling, Step } from '#operations/definitions/handler';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { imageBytes } from '#storage/block/volumes/image-size';
import { readVolume, rowOf, stageOf, type VolumeWork } from '#storage/block/volumes/volume-work';
import type { BlockNeeds } from '#storage/shared/backend-directory';

/** Of a creation, and of a clone. */
export interface MakeVolumeRequest {
  source?: ImageRef;
}

const CREATED = sql(
  'volume_created',
  `UPDATE trivet.volume SET state = 'ready', active_operation = NULL, updated_at = now(), audited_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const NOT_CREATED = sql(
  'volume_not_created',
  `UPDATE trivet.volume SET state = 'gone', active_operation = NULL, volume_group_id = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

/** A new volume, or one with the content of a source image. */
export function makeVolume({ blocks }: BlockNeeds): Handling<VolumeWork, MakeVolumeRequest> {
  const find: Step<VolumeWork, MakeVolumeRequest> = {
    name: 'find',
    calls: ['inspectImage', 'discardStages'],
    async run({ image, sizeBytes }, { operation, progress, call }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const found = await call('inspectImage', signal => volumes.inspectImage(image, signal));
      progress.made = found.state === 'present' && found.sizeBytes === imageBytes(sizeBytes);
      if (found.state === 'present' && !progress.made)
        throw new StorageError('internal', `image ${image.id} has ${found.sizeBytes} bytes instead of ${sizeBytes}`, {
          retry: 'person',
        });
      await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
      return undefined;
    },
  };
  const stage: Step<VolumeWork, MakeVolumeRequest> = {
    name: 'stage',
    calls: ['stage'],
    async run({ image, sizeBytes, thick }, { operation, progress, long }) {
      if (progress.made === true) return undefined;
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const { source } = operation.request;
      const content: StageContent = source
        ? { kind: 'copy', source, sizeBytes: imageBytes(sizeBytes), thick }
        : { kind: 'empty', sizeBytes: imageBytes(sizeBytes), thick };
      await long('stage', signal => volumes.stage(stageOf(operation, image), content, signal));
      return undefined;
    },
  };
  const commit: Step<VolumeWork, MakeVolumeRequest> = {
    name: 'commit',
    calls: ['commit'],
    // The image appears here: whoever comes after must know that this operation was about to make it.
    point: () => {},
    async run({ image }, { operation, progress, call }) {
      if (progress.made === true) return undefined;
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      await call('commit', signal => volumes.commit(stageOf(operation, image), image, { readOnly: false }, signal));
      return undefined;
    },
  };
  const remove: Step<VolumeWork, MakeVolumeRequest> = {
    name: 'remove',
    calls: ['discardStages', 'removeImage'],
    async run({ image }, { operation, call, long }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
      await long('removeImage', signal => volumes.removeImage(image, operation.hostFence, signal));
      return undefined;
    },
  };
  return {
    begin: readVolume,
    steps: [find, stage, commit],
    undo: [remove],
    succeed(writer, operation) {
      writer.write(CREATED, rowOf(operation));
      return undefined;
    },
    fail(writer, operation) {
      writer.write(NOT_CREATED, rowOf(operation));
    },
  };
}
