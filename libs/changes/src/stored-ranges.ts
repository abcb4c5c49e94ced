import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { BrokenChunk, ChunkDecoder } from '#changes/chunk-codec';
import { markStepBroken, readChunk } from '#changes/index-store';
import { BATCH_RANGES } from '#changes/range-writer';
import type { Span } from '#changes/span-path';
import type { Database } from '#platform/database/database';
import { createLogger } from '#platform/logging/log';

const log = createLogger('changes');

/**
 * A stored step is not there as it was: damaged, which it is marked as now, or merged or removed since it was looked up.
 * Whoever looks again may find another way.
 */
export class StepLost extends Error {}

/**
 * A stored step from `from` on, one chunk after the other as they are asked for. It ends only after the last chunk, and
 * throws StepLost for whatever is not what was written. A batch is good until the next one is asked for.
 * @param ahead the next chunk is read while this one is handed on: twice the memory
 */
export async function* storedRanges(
  database: Database,
  tenantId: string,
  step: Pick<Span, 'id' | 'chunks'>,
  from: number,
  signal: AbortSignal,
  ahead = false,
): AsyncGenerator<RangeBatch> {
  if (step.chunks === 0) return;
  let [free, used]: (Buffer | undefined)[] = [];
  const read = (after: number) => {
    const reading = readChunk(database, tenantId, step, after, from, free);
    // Whoever ends before does not ask for it.
    reading.catch(() => {});
    return reading;
  };
  let next: ReturnType<typeof readChunk> | undefined;
  let batch: RangeBatch | undefined;
  for (let last = -1; last < step.chunks - 1; ) {
    signal.throwIfAborted();
    const chunk = await (next ?? read(last));
    const no = last + 1;
    if (!chunk || (last >= 0 && chunk.no !== no)) throw await damaged(database, tenantId, step.id, `no chunk ${no}`);
    last = chunk.no;
    // What is read ahead must not be written over what is being handed on.
    [free, used] = ahead ? [used, chunk.memory] : [chunk.memory, undefined];
    next = ahead && last < step.chunks - 1 ? read(last) : undefined;
    try {
      const decoder = new ChunkDecoder(chunk.body, from);
      const room = Math.min(decoder.left, BATCH_RANGES);
      if (!batch || batch.offsets.length < room) batch = emptyBatch(room);
      while (decoder.next(batch)) yield batch;
    } catch (error) {
      if (!(error instanceof BrokenChunk)) throw error;
      throw await damaged(database, tenantId, step.id, `chunk ${chunk.no}: ${error.message}`);
    }
  }
}

async function damaged(database: Database, tenantId: string, stepId: string, reason: string): Promise<StepLost> {
  if (await markStepBroken(database, tenantId, stepId, reason))
    log.error({ stepId, reason }, 'a step of the change index is damaged');
  return new StepLost(reason);
}
