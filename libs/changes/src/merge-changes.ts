import { builtOf, keepBuilt, readPortion, writePortion } from '#changes/build-portion';
import { type ChainCut, readChain } from '#changes/chain';
import { type NewStep, readLists, readSpans, writeBrokenStep, writeReady } from '#changes/index-store';
import { overlayAll } from '#changes/overlay';
import { cheapestPath, type Merge, type Span } from '#changes/span-path';
import { StepLost, storedRanges } from '#changes/stored-ranges';
import { defineOperation } from '#operations/definitions/define-operation';
import type { Handling } from '#operations/definitions/handler';
import type { LeasedOperation } from '#operations/operation';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import { indexSlot } from '#storage/block/snapshots/index-slot';

/** A span over several steps, named by its cuts; or a deleted snapshot leaves the chain. */
export type MergeChangesRequest = (Merge & { leaves?: undefined }) | { leaves: string };

export interface ChangeNeeds {
  database: Database;
}

/** What is made of stored steps, and which of them say it, oldest first. */
interface Product {
  step: Omit<NewStep, 'id'>;
  inputs: Span[];
}

interface MergeWork {
  products: Product[];
  /** Nothing leads over the cut that leaves: whoever asks is told that it broke. */
  gap?: Omit<NewStep, 'id'>;
}

/**
 * Its steps go in the background, once they lead nowhere (libs/changes/src/index-retention.ts). Its row stays for as long as
 * that of anything that has just gone: whoever asks for it is told that it was forgotten, not that it never was.
 */
const LEAVE = sql(
  'changes_leave',
  `UPDATE trivet.snapshot
      SET cut = CASE WHEN $4 THEN NULL ELSE cut END, active_operation = NULL, updated_at = now()
    WHERE tenant_id = $1 AND id = $2 AND active_operation = $3`,
);

/**
 * Two uses of one thing, the overlay of neighbouring steps. A span over several steps, so that a long delta reads few of
 * them: `request` names its cuts. Or a deleted snapshot leaves the chain (`request.leaves`): the steps before and after it
 * become one, and its allocated list becomes that of the next cut if a snapshot there may be asked for it.
 */
export const mergeChanges = defineOperation('changes.merge', {
  resourceKind: 'volume',
  class: 'index',
  slots: (volumeId, _: MergeChangesRequest) => [indexSlot(volumeId)],
  carriedOut: ({ database }: ChangeNeeds): Handling<MergeWork, MergeChangesRequest> => ({
    begin: readWork,
    steps: [
      {
        name: 'merge',
        portioned: true,
        async run({ products }, context) {
          const { operation, progress } = context;
          const product = products.find(({ step }) => !builtOf(progress, step.kind)?.done);
          if (!product) return undefined;
          const { step, inputs } = product;
          // A portion is bounded; a lost lease is seen at its commit.
          const { signal } = new AbortController();
          const stored = (from: number) =>
            overlayAll(inputs.map(input => storedRanges(database, operation.tenantId, input, from, signal)));
          try {
            const at = builtOf(progress, step.kind)?.at ?? 0;
            writePortion(context, step, await readPortion(stored, at, step.kind === 'delta'));
          } catch (error) {
            if (!(error instanceof StepLost)) throw error;
            throw new StorageError('aborted', `a step of the change index is lost: ${error.message}`, { cause: error });
          }
          return 'again';
        },
      },
    ],
    succeed(writer, operation, { products, gap }) {
      const { tenantId, id, progress } = operation;
      const { leaves } = operation.request;
      for (const { step } of products) {
        const built = builtOf(progress, step.kind);
        if (built) writeReady(writer, operation, built.stepId, built);
      }
      if (gap) writeBrokenStep(writer, operation, { ...gap, id: uuidv7() }, 'a snapshot in between left the index');
      if (leaves !== undefined) writer.write(LEAVE, [tenantId, leaves, id, true]);
      return undefined;
    },
    fail(writer, operation) {
      const { leaves } = operation.request;
      if (leaves !== undefined) writer.write(LEAVE, [operation.tenantId, leaves, operation.id, false]);
    },
    giveUp: { leaves: 'the change index stays as it was: its steps are merged by themselves later' },
  }),
});

async function readWork(tx: Tx, operation: LeasedOperation<MergeChangesRequest>): Promise<MergeWork> {
  const { tenantId, resourceId: volumeId } = operation;
  const request = operation.request;
  const chain = await readChain(tx, tenantId, volumeId);
  const work =
    request.leaves === undefined
      ? await spanOver(tx, operation, request, chain)
      : await withoutCut(tx, operation, chain, request.leaves);
  await keepBuilt(
    tx,
    operation,
    work.products.map(({ step }) => step),
  );
  return work;
}

async function spanOver(
  tx: Tx,
  { tenantId, resourceId: volumeId }: LeasedOperation,
  request: Merge,
  chain: readonly ChainCut[],
): Promise<MergeWork> {
  const [from, to] = [request.from, request.to].map(cut => chain.find(one => one.cut === cut));
  if (!from || !to) return { products: [] };
  const spans = await readSpans(tx, tenantId, volumeId, from.cut, to.cut);
  const inputs = cheapestPath(spans, from.cut, to.cut);
  if (!inputs || inputs.length < 2) return { products: [] };
  return { products: [{ step: deltaStep(volumeId, from, to, request.level), inputs }] };
}

async function withoutCut(
  tx: Tx,
  { tenantId, resourceId: volumeId }: LeasedOperation,
  chain: readonly ChainCut[],
  snapshotId: string,
): Promise<MergeWork> {
  const at = chain.findIndex(({ id }) => id === snapshotId);
  const [before, leaving, after] = [chain[at - 1], chain[at], chain[at + 1]];
  if (!leaving || !after) return { products: [] };
  const work: MergeWork = { products: [] };
  const spans = await readSpans(tx, tenantId, volumeId, before?.cut ?? leaving.cut, after.cut);
  if (before) {
    const inputs = cheapestPath(spans, before.cut, after.cut);
    const step = deltaStep(volumeId, before, after, 0);
    if (!inputs) work.gap = step;
    else if (!spans.some(({ from, to }) => from === before.cut && to === after.cut))
      work.products.push({ step, inputs });
  }
  const [list] = await readLists(tx, tenantId, volumeId, after.cut, 1);
  const path = cheapestPath(spans, leaving.cut, after.cut);
  if (list?.to === leaving.cut && path && chain.slice(at + 1).some(({ live }) => live))
    work.products.push({
      step: {
        volumeId,
        kind: 'allocated',
        level: 0,
        from: 0,
        to: after.cut,
        baseBytes: 0,
        targetBytes: after.sizeBytes,
      },
      inputs: [list, ...path],
    });
  return work;
}

const deltaStep = (volumeId: string, from: ChainCut, to: ChainCut, level: number): Omit<NewStep, 'id'> => ({
  volumeId,
  kind: 'delta',
  level,
  from: from.cut,
  to: to.cut,
  baseBytes: from.sizeBytes,
  targetBytes: to.sizeBytes,
});
