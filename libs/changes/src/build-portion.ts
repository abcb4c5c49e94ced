import type { RangeBatch } from '#backends/extent-source';
import { emptyBatch } from '#backends/extent-source';
import { ChunkEncoder, type EncodedChunk } from '#changes/chunk-codec';
import { type NewStep, stepState, type Totals, writeChunk, writeNewStep } from '#changes/index-store';
import { shaped } from '#changes/overlay';
import type { Writer } from '#operations/definitions/handler';
import type { JsonObject, LeasedOperation } from '#operations/operation';
import type { Tx } from '#platform/database/database';
import { uuidv7 } from '#platform/uuid';

/** Committed together: a crash costs no more than this, and no more is kept in memory. */
const PORTION_CHUNKS = 8;
const PORTION_MS = 5_000;
/** Every offset and length that is stored is a multiple of it; a volume's last block may be shorter. */
const UNIT = 512;

/** How far a step is built; part of the operation's progress. */
export interface Built extends Totals {
  stepId: string;
  from: number;
  to: number;
  /** Everything before it is stored. */
  at: number;
  done: boolean;
}

export const builtOf = (progress: JsonObject, kind: NewStep['kind']): Built | undefined =>
  progress[kind] as unknown as Built | undefined;

/**
 * What an earlier attempt built is gone on with if it is for the same cuts and still there; else it is begun anew. What
 * undoes looks at nothing.
 */
export async function keepBuilt(
  tx: Tx,
  { tenantId, progress }: LeasedOperation,
  steps: readonly Omit<NewStep, 'id'>[],
): Promise<void> {
  if (progress.failure !== undefined) return;
  for (const kind of ['delta', 'allocated'] as const) {
    const built = builtOf(progress, kind);
    if (!built) continue;
    const wanted = steps.some(step => step.kind === kind && step.from === built.from && step.to === built.to);
    if (!wanted || (await stepState(tx, tenantId, built.stepId)) !== 'building') delete progress[kind];
  }
}

export interface Portion {
  chunks: EncodedChunk[];
  ranges: number;
  dataBytes: number;
  holeBytes: number;
  at: number;
  done: boolean;
}

/**
 * Reads ranges from `at` on until a portion is full, it has taken long, or the source ends. The source is closed then, and
 * asked again from the last chunk's end for the next portion, which costs it no more than from the beginning.
 */
export async function readPortion(
  source: (from: number) => AsyncIterable<RangeBatch>,
  at: number,
  keepHoles: boolean,
): Promise<Portion> {
  const encoder = new ChunkEncoder();
  const portion: Portion = { chunks: [], ranges: 0, dataBytes: 0, holeBytes: 0, at, done: true };
  const take = () => {
    const chunk = encoder.take();
    if (!chunk) return;
    portion.chunks.push(chunk);
    portion.ranges += chunk.count;
    portion.at = chunk.endOffset;
  };
  const until = performance.now() + PORTION_MS;
  let end = at;
  const shape = { from: at, end: Number.MAX_SAFE_INTEGER, keepHoles, kinds: true };
  for await (const ranges of shaped(source(at), shape)) {
    const batch = aligned(ranges, end);
    for (let n = 0; n < batch.count; ) {
      n = encoder.add(batch, n);
      if (n < batch.count) take();
    }
    for (let n = 0; n < batch.count; n++) {
      if (batch.holes[n] === 1) portion.holeBytes += batch.lengths[n]!;
      else portion.dataBytes += batch.lengths[n]!;
      end = batch.offsets[n]! + batch.lengths[n]!;
    }
    if (portion.chunks.length >= PORTION_CHUNKS || performance.now() >= until) {
      portion.done = false;
      break;
    }
  }
  take();
  return portion;
}

/**
 * Widened to whole units, and beginning where what is stored ends. A hole that is no whole unit counts as data: the one
 * may be reported where the other is, but not the other way round.
 */
function aligned({ count, offsets, lengths, holes }: RangeBatch, after: number): RangeBatch {
  const batch = emptyBatch(count);
  let end = after;
  for (let n = 0; n < count; n++) {
    const from = Math.max(end, Math.floor(offsets[n]! / UNIT) * UNIT);
    const to = Math.ceil((offsets[n]! + lengths[n]!) / UNIT) * UNIT;
    if (to <= from) continue;
    const at = batch.count++;
    batch.offsets[at] = from;
    batch.lengths[at] = to - from;
    batch.holes[at] = offsets[n]! % UNIT === 0 && lengths[n]! % UNIT === 0 ? holes[n]! : 0;
    end = to;
  }
  return batch;
}

/** Writes a portion with the progress that tells of it: one commit, under the fence. True: the step is complete. */
export function writePortion(
  context: Writer & { operation: LeasedOperation; progress: JsonObject },
  step: Omit<NewStep, 'id'>,
  portion: Portion,
): boolean {
  const { operation, progress } = context;
  const known = builtOf(progress, step.kind);
  const built: Built = known ?? {
    stepId: uuidv7(),
    from: step.from,
    to: step.to,
    at: 0,
    done: false,
    ranges: 0,
    dataBytes: 0,
    holeBytes: 0,
    chunks: 0,
    storedBytes: 0,
  };
  if (!known) writeNewStep(context, operation, { ...step, id: built.stepId });
  let { chunks, storedBytes } = built;
  for (const chunk of portion.chunks) {
    writeChunk(context, operation, built.stepId, chunks++, chunk);
    storedBytes += chunk.body.length;
  }
  progress[step.kind] = {
    ...built,
    at: portion.at,
    done: portion.done,
    ranges: built.ranges + portion.ranges,
    dataBytes: built.dataBytes + portion.dataBytes,
    holeBytes: built.holeBytes + portion.holeBytes,
    chunks,
    storedBytes,
  };
  return portion.done;
}
