import { builtOf, readPortion, writePortion } from '#changes/build-portion';
import { writeBrokenStep, writeReady } from '#changes/index-store';
import { type CutImage, deltaOf, type IndexWork, listOf, needsList, readIndexWork } from '#changes/index-work';
import { defineOperation } from '#operations/definitions/define-operation';
import { failureOf, type Handling, type Step, type Writer } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { indexSlot } from '#storage/block/snapshots/index-slot';
import type { BlockNeeds } from '#storage/shared/backend-directory';

export interface IndexChangesRequest {
  volumeId: string;
  resources: readonly [volumeId: string];
}

const INDEXED = sql(
  'changes_indexed',
  `UPDATE trivet.snapshot SET index_state = $3
    WHERE tenant_id = $1 AND id = $2 AND cut IS NOT NULL AND index_state = 'pending'`,
);

/**
 * What changed since the cut before, or, where there is none to compare with, what the snapshot holds; in portions, each
 * committed with the place where the next one begins. A base that cannot be read breaks the step and nothing else: the
 * snapshot begins a new chain by its own list. One that cannot be read itself is left out of the chain.
 */
export const indexChanges = defineOperation('changes.index', {
  resourceKind: 'snapshot',
  class: 'index',
  slots: (_, { volumeId }: IndexChangesRequest) => [indexSlot(volumeId)],
  carriedOut: buildIndex,
});

function buildIndex({ blocks }: BlockNeeds): Handling<IndexWork, IndexChangesRequest> {
  const compare: Step<IndexWork, IndexChangesRequest> = {
    name: 'compare',
    calls: ['changed'],
    portioned: true,
    async run(work, context) {
      const { operation, progress, long } = context;
      const built = builtOf(progress, 'delta');
      if (!work.base || built?.done || progress.broken !== undefined) return undefined;
      const { base, target } = work;
      const { extents } = await blocks.open(operation.tenantId, operation.backendId);
      try {
        const portion = await long('changed', signal =>
          readPortion(from => extents.changed(base.image, target.image, from, signal), built?.at ?? 0, true),
        );
        return writePortion(context, deltaOf({ ...work, base }), portion) ? undefined : 'again';
      } catch (error) {
        if (!isStorageError(error) || error.retry !== 'never') throw error;
        progress.broken = error.message;
        return undefined;
      }
    },
  };
  const list: Step<IndexWork, IndexChangesRequest> = {
    name: 'list',
    calls: ['allocated'],
    portioned: true,
    async run(work, context) {
      const { operation, progress, long } = context;
      const built = builtOf(progress, 'allocated');
      if (built?.done) return undefined;
      const delta = progress.broken === undefined ? builtOf(progress, 'delta') : undefined;
      if (!built && !needsList(work, delta)) return undefined;
      const { image } = work.target;
      const { extents } = await blocks.open(operation.tenantId, operation.backendId);
      const portion = await long('allocated', signal =>
        readPortion(from => extents.allocated(image, from, signal), built?.at ?? 0, false),
      );
      return writePortion(context, listOf(work), portion) ? undefined : 'again';
    },
  };
  return {
    begin: readIndexWork,
    steps: [compare, list],
    succeed(writer, operation, work) {
      const { progress, tenantId, resourceId } = operation;
      const delta = builtOf(progress, 'delta');
      const allocated = builtOf(progress, 'allocated');
      const broken = progress.broken as string | undefined;
      if (work.base && broken !== undefined) breakStep(writer, operation, work, work.base, broken);
      else if (delta) writeReady(writer, operation, delta.stepId, delta);
      if (allocated) writeReady(writer, operation, allocated.stepId, allocated);
      if (work.gap) breakStep(writer, operation, work, work.gap, `the image of ${work.gap.name} is gone`);
      writer.write(INDEXED, [tenantId, resourceId, 'indexed']);
      return undefined;
    },
    fail(writer, operation, work) {
      const reason = failureOf(operation)?.message ?? 'its image cannot be read';
      const before = work.base ?? work.gap;
      if (before) breakStep(writer, operation, work, before, reason);
      writer.write(INDEXED, [operation.tenantId, operation.resourceId, 'broken']);
    },
    giveUp: {
      leaves:
        'the snapshot stays and is left out of the change index: nobody can be told what changed up to it or since it, so the next backup of its volume has to be a full one',
    },
  };
}

/** Whoever asks for a difference over it is told why there is none. */
function breakStep(writer: Writer, operation: LeasedOperation, work: IndexWork, from: CutImage, reason: string): void {
  writeBrokenStep(writer, operation, { ...deltaOf({ ...work, base: from }), id: uuidv7() }, reason);
}
