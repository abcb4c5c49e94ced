import { emptyBatch, type RangeBatch } from '#backends/extent-source';

/** Ranges of a batch that is worth handing on: some messages' worth, and 140 KiB. */
export const BATCH_RANGES = 8_192;

/** Shorter runs are not worth the views that copying them at once takes. */
const SHORT_RUN = 16;

/**
 * Collects ascending ranges into batches; touching ranges of one kind become one. `take` gives what is complete: the last
 * range stays until it is known that nothing touches it. What `take` gave is written over by what is added after it: new
 * columns for each batch had the garbage collector take half of the time of a stream.
 */
export class RangeWriter {
  private readonly batch: RangeBatch;
  private offset = 0;
  private end = -1;
  private hole = 0;

  /** @param kinds false: data and holes that touch become one range, too */
  constructor(
    private readonly kinds = true,
    private readonly capacity = BATCH_RANGES,
  ) {
    this.batch = emptyBatch(capacity);
  }

  get full(): boolean {
    return this.batch.count === this.capacity;
  }

  /** Call `take` as soon as it is full. */
  add(offset: number, end: number, hole: number): void {
    if (offset === this.end && (!this.kinds || hole === this.hole)) {
      this.end = end;
      if (hole === 0) this.hole = 0;
      return;
    }
    this.settle();
    this.offset = offset;
    this.end = end;
    this.hole = hole;
  }

  /**
   * Those of the batch from `start` on, as long as they touch nothing and there is room: copied as a whole. At least one;
   * returns where it stopped. Call `take` as soon as it is full.
   */
  addRun(from: RangeBatch, start: number): number {
    const { offsets, lengths, holes } = from;
    const { batch, kinds } = this;
    const limit = Math.min(from.count, start + this.capacity - batch.count);
    let end = offsets[start]! + lengths[start]!;
    let stop = start + 1;
    for (; stop < limit; stop++) {
      const offset = offsets[stop]!;
      if (offset === end && (!kinds || holes[stop] === holes[stop - 1])) break;
      end = offset + lengths[stop]!;
    }
    const last = stop - 1;
    this.add(offsets[start]!, offsets[start]! + lengths[start]!, holes[start]!);
    if (stop - start < SHORT_RUN) {
      for (let n = start + 1; n < stop; n++) this.add(offsets[n]!, offsets[n]! + lengths[n]!, holes[n]!);
      return stop;
    }
    this.settle();
    const rest = start + 1;
    batch.offsets.set(offsets.subarray(rest, last), batch.count);
    batch.lengths.set(lengths.subarray(rest, last), batch.count);
    batch.holes.set(holes.subarray(rest, last), batch.count);
    batch.count += last - rest;
    this.offset = offsets[last]!;
    this.end = end;
    this.hole = holes[last]!;
    return stop;
  }

  /** Undefined when there is nothing. Good until more is added. */
  take(): RangeBatch | undefined {
    const { count, offsets, lengths, holes } = this.batch;
    if (count === 0) return undefined;
    this.batch.count = 0;
    return { count, offsets, lengths, holes };
  }

  /** The rest: at most one batch more than `full` had said. */
  finish(): RangeBatch | undefined {
    this.settle();
    this.end = -1;
    return this.take();
  }

  private settle(): void {
    if (this.end < 0) return;
    const { batch } = this;
    const n = batch.count++;
    batch.offsets[n] = this.offset;
    batch.lengths[n] = this.end - this.offset;
    batch.holes[n] = this.hole;
  }
}
