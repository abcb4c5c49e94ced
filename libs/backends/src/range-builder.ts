import type { RangeBatch } from '#backends/extent-source';

/** What every initiator can address. */
const SECTOR = 512;
const FIRST_CAPACITY = 1_024;

/**
 * Makes batches of ascending pieces as the port wants them: whole sectors, within the image, nothing that ends before the
 * start, touching pieces of one kind as one. A hole never claims more than is zero: where it shares a sector with
 * something else, that sector is data.
 */
export class RangeBuilder {
  private offsets = new Float64Array(FIRST_CAPACITY);
  private lengths = new Float64Array(FIRST_CAPACITY);
  private holes = new Uint8Array(FIRST_CAPACITY);
  private settled = 0;
  private offset = 0;
  private end = 0;
  private hole = 0;
  /** Where the last piece ended, also over batches. */
  private last = 0;

  constructor(
    private readonly from: number,
    private readonly limit: number,
  ) {}

  /** How many ranges `take` would give, at most one too few. */
  get count(): number {
    return this.settled;
  }

  /** Pieces come in order, and do not overlap. */
  add(offset: number, end: number, hole: 0 | 1): void {
    const [first, last] = [down(offset), Math.min(up(end), this.limit)];
    if (first === offset && last === end) this.put(offset, end, hole);
    else if (hole === 0) this.put(first, last, 0);
    else {
      const zeros = Math.min(up(offset), this.limit);
      const zerosEnd = Math.max(zeros, end >= this.limit ? this.limit : down(end));
      this.put(first, zeros, 0);
      this.put(zeros, zerosEnd, 1);
      this.put(zerosEnd, last, 0);
    }
  }

  /** Undefined when there is nothing. */
  take(): RangeBatch | undefined {
    this.settle();
    const { settled: count } = this;
    if (count === 0) return undefined;
    this.settled = 0;
    return {
      count,
      offsets: this.offsets.slice(0, count),
      lengths: this.lengths.slice(0, count),
      holes: this.holes.slice(0, count),
    };
  }

  private put(from: number, end: number, hole: 0 | 1): void {
    const offset = Math.max(from, this.last);
    if (offset >= end) return;
    this.last = end;
    if (end <= this.from) return;
    if (offset === this.end && hole === this.hole && this.end > this.offset) {
      this.end = end;
      return;
    }
    this.settle();
    this.offset = offset;
    this.end = end;
    this.hole = hole;
  }

  private settle(): void {
    if (this.end === this.offset) return;
    if (this.settled === this.offsets.length) this.grow();
    const n = this.settled++;
    this.offsets[n] = this.offset;
    this.lengths[n] = this.end - this.offset;
    this.holes[n] = this.hole;
    this.offset = this.end;
  }

  private grow(): void {
    const capacity = this.offsets.length * 4;
    const wider = <C extends Float64Array | Uint8Array>(column: C, into: C): C => {
      into.set(column);
      return into;
    };
    this.offsets = wider(this.offsets, new Float64Array(capacity));
    this.lengths = wider(this.lengths, new Float64Array(capacity));
    this.holes = wider(this.holes, new Uint8Array(capacity));
  }
}

/** Start a walk there, so that what lies around `from` comes out as in one from zero. */
export const sectorOf = (from: number): number => down(from);

const down = (offset: number): number => Math.floor(offset / SECTOR) * SECTOR;
const up = (offset: number): number => Math.ceil(offset / SECTOR) * SECTOR;
