import { setImmediate as turn } from 'node:timers/promises';
import type { RangeBatch } from '#backends/extent-source';
import type { Outflow } from '#cbt/outflow';
import type { ChangedRanges } from '#changes/changed-blocks';

/** How a face writes a message. */
export interface MessageEncoder {
  /** The ranges `from` to `to` of the batch. */
  encode(batch: RangeBatch, from: number, to: number): Buffer;
  /** The one message of a stream without ranges: type and capacity are said all the same. */
  empty(): Buffer;
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
  let ended = false;
  let turned = performance.now();
  try {
    for (;;) {
      const { done, value: batch } = await unlessAborted(source.next(), signal);
      if (done) break;
      for (let from = 0; from < batch.count; from += perMessage) {
        const to = Math.min(from + perMessage, batch.count);
        const full = send(encoder.encode(batch, from, to));
        sent.ranges += to - from;
        if (full) await full;
        if (performance.now() - turned > TURN_MS) {
          await turn();
          signal.throwIfAborted();
          turned = performance.now();
        }
      }
    }
    ended = true;
    if (sent.bytes === 0) {
      const empty = encoder.empty();
      sent.bytes += empty.length;
      await out.send(empty);
    }
    await out.flushed();
  } finally {
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
