import { emptyBatch, type RangeBatch } from '#backends/extent-source';

/** Ranges of a batch that is worth handing on: some messages' worth, and 140 KiB. */
export const BATCH_RANGES = 8_192;

/**
 * Collects ascending ranges into batches; touching ranges of one kind become one. `take` gives what is complete: the last
 * range stays until it is known that nothing touches it.
 */
export class RangeWriter {
  private batch: RangeBatch;
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

  /** Undefined when there is nothing. */
  take(): RangeBatch | undefined {
    if (this.batch.count === 0) return undefined;
    const taken = this.batch;
    this.batch = emptyBatch(this.capacity);
    return taken;
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
