import type { BlockStore, ImageRef, StageContent, StageRef } from '#backends/block-backend';
import type { TargetRef } from '#backends/exporter';
import type { Handler, Step } from '#operations/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database';
import { StorageError } from '#platform/errors';
import { sql } from '#platform/sql';
import { daemonOf } from '#storage/pools/pool-store';
import type { TargetIdentity } from '#storage/publications/target-identity';
import { KEPT } from '#storage/snapshots/kept-images';
import { imageBytes } from '#storage/volumes/image-size';
import { cloneVolume, createVolume, deleteVolume, expandVolume } from '#storage/volumes/volume-operations';
import { volumeImage } from '#storage/volumes/volume-store';

/** Opens a tenant's registered block backends. */
export interface BlockDirectory {
  open(tenantId: string, backendId: string): Promise<BlockStore>;
}

/**
 * Images carry the incarnation, so that who finds one of that name knows whose it is. Content is made under a temporary
 * name of this operation and fence, and given its name in one step that never replaces: a crash leaves temporaries, which
 * the repeat drops, or the whole image, which it finds (invariant F1).
 */
interface VolumeWork {
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

async function readWork(tx: Tx, { tenantId, backendId, resourceId }: LeasedOperation): Promise<VolumeWork> {
  const [row] = await tx.query<WorkRow>(READ, [tenantId, resourceId]);
  if (!row) throw new StorageError('internal', `volume ${resourceId} has no row`, { retry: 'person' });
  const snapshots = await tx.query<{ id: string; pool: string; folder: string }>(READ_SNAPSHOTS, [
    tenantId,
    resourceId,
  ]);
  const daemon = row.tid === null ? undefined : await daemonOf(tx, tenantId, backendId, row.pool);
  return {
    image: volumeImage(row),
    sizeBytes: BigInt(row.sizeBytes),
    thick: row.thick,
    target: daemon && { daemon, tid: row.tid!, iqn: row.target!.name },
    snapshots: snapshots.map(snapshot => ({ ...snapshot, kind: 'snapshot' as const })),
    exported: row.exported,
  };
}

const stageOf = (operation: LeasedOperation, image: ImageRef): StageRef => ({
  pool: image.pool,
  imageId: image.id,
  operationId: operation.id,
  fence: operation.hostFence,
});

const rowOf = (operation: LeasedOperation) => [operation.tenantId, operation.resourceId, operation.id] as const;

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
export function createVolumeHandlers(blocks: BlockDirectory): Handler[] {
  const find: Step<VolumeWork> = {
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
  const stage: Step<VolumeWork> = {
    name: 'stage',
    calls: ['stage'],
    async run({ image, sizeBytes, thick }, { operation, progress, long }) {
      if (progress.made === true) return undefined;
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      const source = operation.kind === cloneVolume.kind ? cloneVolume.requestOf(operation).source : undefined;
      const content: StageContent = source
        ? { kind: 'copy', source, sizeBytes: imageBytes(sizeBytes), thick }
        : { kind: 'empty', sizeBytes: imageBytes(sizeBytes), thick };
      await long('stage', signal => volumes.stage(stageOf(operation, image), content, signal));
      return undefined;
    },
  };
  const commit: Step<VolumeWork> = {
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
  const remove: Step<VolumeWork> = {
    name: 'remove',
    calls: ['discardStages', 'removeImage'],
    async run({ image }, { operation, call, long }) {
      const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
      await call('discardStages', signal => volumes.discardStages(image, operation.hostFence, signal));
      await long('removeImage', signal => volumes.removeImage(image, operation.hostFence, signal));
      return undefined;
    },
  };
  const making: Omit<Handler<VolumeWork>, 'kind'> = {
    begin: readWork,
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
  return [createVolume.handledBy(making), cloneVolume.handledBy(making)];
}

const GROWN = sql(
  'volume_grown',
  `UPDATE trivet.volume SET size_bytes = $4, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const NOT_GROWN = sql(
  'volume_not_grown',
  `UPDATE trivet.volume SET active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

/** Under I/O: hosts see the new size when they look again (invariant I3). */
export function expandVolumeHandler(blocks: BlockDirectory): Handler {
  return expandVolume.handledBy<VolumeWork>({
    begin: readWork,
    steps: [
      {
        name: 'grow',
        calls: ['growImage'],
        async run({ image, thick }, { operation, long }) {
          const { volumes } = await blocks.open(operation.tenantId, operation.backendId);
          const size = { sizeBytes: imageBytes(BigInt(expandVolume.requestOf(operation).sizeBytes)), thick };
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
      writer.write(GROWN, [...rowOf(operation), expandVolume.requestOf(operation).sizeBytes]);
      return undefined;
    },
    fail(writer, operation) {
      writer.write(NOT_GROWN, rowOf(operation));
    },
  });
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
          active_operation = NULL, volume_group_id = NULL, tid = NULL, target = NULL, serial_number = NULL, applied_instance = NULL,
          export_version = export_version + 1, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
/** Withheld until the audit has found its image whole; back into the bin if it came from there. */
const NOT_ENDED = sql(
  'volume_not_ended',
  `UPDATE trivet.volume
      SET state = CASE WHEN binned_until IS NULL THEN 'ready' ELSE 'binned' END, active_operation = NULL,
          applied_instance = NULL, export_version = export_version + 1, updated_at = now(),
          condition = jsonb_build_object('type', 'lost', 'at', now(),
            'message', 'its deletion was given up half-way: it is withheld until the audit has found its image')
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);
const RELEASE_TARGET = sql('volume_release_target', 'SELECT trivet.release_target_id($1)');

/**
 * Ends sessions and target, then the snapshots' images, then its own, unless the recycle bin keeps that. It cannot fail:
 * what cannot be removed waits for a person.
 */
export function deleteVolumeHandler(blocks: BlockDirectory, binMs: number): Handler {
  return deleteVolume.handledBy<VolumeWork>({
    begin: readWork,
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
          if (deleteVolume.requestOf(operation).bin) return undefined;
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
      writer.write(ENDED, [...rowOf(operation), deleteVolume.requestOf(operation).bin, binMs]);
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
  });
}
