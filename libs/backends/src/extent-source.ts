import type { ImageRef } from '#backends/image-ref';

/**
 * The port for which ranges of an image hold data, and in which two images differ. Rules for both methods:
 *  - Ranges are ascending and disjoint, also over batches, within the image's size, and never of length zero. Neighbours
 *    of one kind may touch; nobody need coalesce.
 *  - The first may begin before `from` when it reaches beyond it; none ends at or before it. Starting at `from` costs no
 *    more than starting at zero.
 *  - Pulled: the next window is read when the next batch is asked for. Memory does not follow sizes.
 *  - More may be reported than is so, never less. What cannot be known throws: a missing image `not_found`, an image that
 *    is not immutable or lies elsewhere `failed_precondition`, a pool that is down `unavailable`. It never ends short.
 *  - `signal` ends it with its reason.
 */
export interface ExtentSource {
  /**
   * How `changed` finds out in this pool: by comparing addresses (as many steps as extents), or by comparing the data
   * (`compare`, where nothing is shared). Rejects as the other methods do.
   */
  methodOf(pool: string, signal: AbortSignal): Promise<'extents' | 'compare'>;

  /** What may hold something else than zeros. */
  allocated(image: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch>;

  /**
   * Where `target` may differ from `base`, over the whole of `target`: beyond the end of a shorter base everything that
   * holds data is changed. `hole`: zeros in the target now.
   */
  changed(base: ImageRef, target: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch>;
}

/**
 * Columns, because a stream has a hundred million ranges: bytes as numbers, exact below 2^53, which no image reaches.
 * Only the first `count` entries count. Whoever takes a batch may keep it.
 */
export interface RangeBatch {
  count: number;
  offsets: Float64Array;
  lengths: Float64Array;
  /** 1: zeros in the target, without data. 0: data. */
  holes: Uint8Array;
}

export const emptyBatch = (capacity: number): RangeBatch => ({
  count: 0,
  offsets: new Float64Array(capacity),
  lengths: new Float64Array(capacity),
  holes: new Uint8Array(capacity),
});
