import { setImmediate as turn } from 'node:timers/promises';
import type { RangeBatch } from '#backends/extent-source';
import { MessageSize } from '#cbt/message-size';
import type { Outflow } from '#cbt/outflow';
import { StreamEnd } from '#cbt/stream-end';
import type { ChangedRanges } from '#changes/changed-blocks';

/** How a service writes a message. */
export interface MessageEncoder {
  /** The ranges `from` to `to` of the batch. */
  encode(batch: RangeBatch, from: number, to: number): Buffer;
  /** A message of `encode` that is needed no more. */
  recycle?(message: Buffer): void;
}

export interface Pumped {
  ranges: number;
  bytes: number;
}

/** Others get their turn at least so often, though source and caller never let us wait. */
const TURN_MS = 10;

/**
 * Moves a stream from its source to its caller. The next batch is asked for when the caller has taken enough of the last
 * ones, so what is held follows neither the stream's length nor the caller's pace. Resolves only when the source has ended
 * and everything is taken; throws what the source threw, StreamEnd, or the signal's reason, and leaves the source closed.
 * Without ranges there is no message: what is written of an empty one by who lists them is a record of nothing.
 */
export async function pump(
  { batches }: Pick<ChangedRanges, 'batches'>,
  encoder: MessageEncoder,
  perMessage: number,
  out: Outflow,
  signal: AbortSignal,
  sent: Pumped,
): Promise<void> {
  const recycle = encoder.recycle?.bind(encoder);
  const send = (message: Buffer): Promise<void> | undefined => {
    sent.bytes += message.length;
    return out.send(message, recycle);
  };
  const source = batches[Symbol.asyncIterator]();
  const size = new MessageSize(perMessage);
  let ended = false;
  let reached: number | undefined;
  let turned = performance.now();
  try {
    for (;;) {
      const { done, value: batch } = await unlessAborted(source.next(), signal);
      if (done) break;
      for (let from = 0, to: number; from < batch.count; from = to) {
        to = Math.min(from + size.ranges, batch.count);
        const full = send(encoder.encode(batch, from, to));
        sent.ranges += to - from;
        reached = batch.offsets[to - 1]! + batch.lengths[to - 1]!;
        const began = performance.now();
        if (full) await full;
        const now = performance.now();
        size.sent(full ? now - began : 0);
        if (now - turned > TURN_MS) {
          await turn();
          signal.throwIfAborted();
          turned = performance.now();
        }
      }
    }
    ended = true;
    await out.flushed();
  } catch (error) {
    throw error instanceof StreamEnd ? error.reachedBy(reached) : error;
  } finally {
    out.close();
    // Not awaited: a source that does not heed its signal must not keep the call.
    if (!ended) source.return?.().catch(() => {});
  }
}

/** The promise's outcome, or the signal's reason as soon as there is one. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted, { once: true });
    promise
      .then(resolve, error => reject(signal.aborted ? signal.reason : error))
      .finally(() => signal.removeEventListener('abort', aborted));
  });
}
