/**
 * Faults before and within the streams of an extent source. Their methods are `extents.methodOf` (resource: the pool),
 * `extents.allocated` and `extents.changed` (the image; the target). What the modes mean for a stream:
 *   fail-before, hang   nothing comes, then the error, or silence until the signal
 *   fail-after, hang-after   half of the first batch comes, then the same: never a whole answer
 *   delay               before the first batch
 *   late                `timeout` at once; there is no effect that could come later
 */
import { randomUUID } from 'node:crypto';
import type { ImageRef } from '#backends/block-backend';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import type { InFlight } from '#backends/in-flight';
import { isStorageError } from '#platform/errors';
import { type Fault, faultError, pause, takeFault, timedOut } from '#test/fakes/object/fake-faults';
import { logCall } from '#test/fakes/object/fake-object-backend';
import type { FakeState } from '#test/fakes/object/fake-state';

export class FaultyExtents implements ExtentSource {
  constructor(
    private readonly state: FakeState,
    private readonly inner: ExtentSource,
    private readonly inFlight: InFlight,
  ) {}

  async methodOf(pool: string, signal: AbortSignal): Promise<'extents' | 'compare'> {
    // As a stream of one, so that faults mean the same.
    const answer = async function* (source: ExtentSource) {
      yield await source.methodOf(pool, signal);
    };
    for await (const method of this.#faulty('methodOf', pool, signal, () => answer(this.inner))) return method;
    throw timedOut('extents.methodOf');
  }

  allocated(image: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    return this.#faulty('allocated', image.id, signal, () => this.inner.allocated(image, from, signal), half);
  }

  changed(base: ImageRef, target: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    return this.#faulty('changed', target.id, signal, () => this.inner.changed(base, target, from, signal), half);
  }

  async *#faulty<T>(
    name: string,
    resource: string,
    signal: AbortSignal,
    begin: () => AsyncIterable<T>,
    part?: (first: T) => T,
  ): AsyncGenerator<T> {
    signal.throwIfAborted();
    const method = `extents.${name}`;
    const call = { call: randomUUID(), method, resource };
    const ended = Promise.withResolvers<void>();
    void this.inFlight.run(() => ended.promise);
    let outcome = 'cancelled';
    try {
      const fault = this.state.write(() => {
        logCall(this.state, call, 'begin', null);
        return takeFault(this.state, method, resource);
      });
      if (fault?.mode === 'late') throw timedOut(method);
      if (fault?.mode === 'fail-before' || fault?.mode === 'hang') await strike(fault, signal);
      if (fault?.mode === 'delay') await pause(fault.delay_ms ?? 0, method, signal);
      const isCutOff = fault?.mode === 'fail-after' || fault?.mode === 'hang-after';
      for await (const value of begin()) {
        const given = isCutOff ? part?.(value) : value;
        if (given !== undefined) yield given;
        if (isCutOff) break;
      }
      if (isCutOff) await strike(fault, signal);
      outcome = 'ok';
    } catch (error) {
      if (!signal.aborted) outcome = isStorageError(error) ? error.kind : 'defect';
      throw signal.aborted ? signal.reason : error;
    } finally {
      logCall(this.state, call, 'end', outcome);
      ended.resolve();
    }
  }
}

/** Fails, or waits for the signal and ends with its reason. */
function strike(fault: Fault, signal: AbortSignal): Promise<never> {
  if (fault.mode.startsWith('fail')) throw faultError(fault);
  return new Promise((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

const half = (batch: RangeBatch): RangeBatch => ({ ...batch, count: batch.count >> 1 });
