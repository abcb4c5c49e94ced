import type { ImageRef } from '#backends/block-backend';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import { isStorageError } from '#platform/errors';
import { backendCallDuration, backendCallSpan, backendCallsTotal, countBackendCall } from '#platform/metrics/metrics';
import { isTraced, startSpan } from '#platform/tracing/tracing';

const resultOf = (error: unknown) => (isStorageError(error) ? error.kind : 'internal');

/** Each stream counts as one call, and for the time that the source took: not for that of who reads it. */
export const meteredExtents = (kind: string, source: ExtentSource): ExtentSource => ({
  methodOf: (pool, signal) =>
    countBackendCall(kind, 'extents.methodOf', resultOf, async () => source.methodOf(pool, signal)),
  allocated: (image: ImageRef, from, signal) =>
    meteredStream(kind, 'extents.allocated', source.allocated(image, from, signal), signal),
  changed: (base, target, from, signal) =>
    meteredStream(kind, 'extents.changed', source.changed(base, target, from, signal), signal),
});

async function* meteredStream(
  kind: string,
  method: string,
  batches: AsyncIterable<RangeBatch>,
  signal: AbortSignal,
): AsyncGenerator<RangeBatch> {
  const source = batches[Symbol.asyncIterator]();
  // Stays so when its reader leaves.
  let result = 'cancelled';
  let ms = 0;
  const span = isTraced() ? startSpan(`${kind} ${method}`, backendCallSpan(kind, method)) : undefined;
  try {
    for (;;) {
      const begin = performance.now();
      const next = await source.next().finally(() => {
        ms += performance.now() - begin;
      });
      if (next.done) {
        result = 'ok';
        return;
      }
      yield next.value;
    }
  } catch (error) {
    if (!signal.aborted) result = resultOf(error);
    throw error;
  } finally {
    backendCallDuration.observe({ backend_kind: kind, method }, ms / 1_000);
    backendCallsTotal.inc({ backend_kind: kind, method, result });
    span?.end(result === 'ok' ? undefined : result);
    await source.return?.();
  }
}
