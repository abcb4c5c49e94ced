import type { RangeBatch } from '#backends/extent-source';

/** One range at a time out of batches. Inside a batch it moves without waiting: `next` is false when `pull` must be. */
export class RangeCursor {
  offset = 0;
  end = 0;
  hole = 0;
  done = false;
  private batch: RangeBatch | undefined;
  private at = 0;
  private readonly source: AsyncIterator<RangeBatch>;

  constructor(batches: AsyncIterable<RangeBatch>) {
    this.source = batches[Symbol.asyncIterator]();
  }

  /** Moves to the next range of this batch; false when there is none in it. */
  next(): boolean {
    const { batch } = this;
    if (batch === undefined || this.at === batch.count) return false;
    const n = this.at++;
    this.offset = batch.offsets[n]!;
    this.end = this.offset + batch.lengths[n]!;
    this.hole = batch.holes[n]!;
    return true;
  }

  /** Moves on over the end of a batch; sets `done` after the last range. */
  async pull(): Promise<void> {
    do {
      const { value, done } = await this.source.next();
      if (done) {
        this.done = true;
        return;
      }
      this.batch = value;
      this.at = 0;
    } while (!this.next());
  }

  /** What was begun below must not be left open. */
  async close(): Promise<void> {
    await this.source.return?.();
  }
}
