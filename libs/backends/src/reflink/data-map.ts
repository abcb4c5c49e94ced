/**
 * Where a file holds data, window by window. From its extents where the file system tells them (FIEMAP, synced), else
 * from SEEK_DATA and SEEK_HOLE, which know no addresses.
 */
import { EXTENT_UNCERTAIN, EXTENT_UNWRITTEN, ExtentReader } from '#backends/linux/fiemap';
import { nextData } from '#backends/linux/libc';
import { codeOf } from '#backends/reflink/file-errors';

/** A call of some milliseconds, and 230 KB. */
const WINDOW_EXTENTS = 4_096;
/** Each costs two system calls. */
const WINDOW_RANGES = 256;
const NO_MAP = ['EOPNOTSUPP', 'ENOTSUP', 'ENOTTY', 'ENOSYS'];

/** Segments in order, between them holes; good until the next one is read of the same map. */
export interface MapWindow {
  /** All up to here is known, and no segment reaches beyond it. */
  end: number;
  count: number;
  offsets: Float64Array;
  ends: Float64Array;
  /**
   * Where it lies on the disk, less where in the file: equal for the same blocks, however extents are cut. NaN, which
   * equals nothing, where the address does not tell what is there.
   */
  shifts: Float64Array;
}

export interface DataMap {
  /** What lies from `start` on, at most up to `end`. */
  read(start: number, end: number): Promise<MapWindow>;
}

/** Everything at `size` and beyond is a hole, also what is reserved there. */
export class FileMap implements DataMap {
  readonly #window: MapWindow = {
    end: 0,
    count: 0,
    offsets: new Float64Array(WINDOW_EXTENTS),
    ends: new Float64Array(WINDOW_EXTENTS),
    shifts: new Float64Array(WINDOW_EXTENTS),
  };
  #extents: Pick<ExtentReader, 'read'> | undefined;

  constructor(
    private readonly fd: number,
    private readonly size: number,
    extents: Pick<ExtentReader, 'read'> = new ExtentReader(fd, WINDOW_EXTENTS),
  ) {
    this.#extents = extents;
  }

  async read(start: number, end: number): Promise<MapWindow> {
    const window = this.#window;
    const limit = Math.min(end, this.size);
    window.count = 0;
    window.end = end;
    if (start >= limit) return window;
    const known = await this.#readUpTo(start, limit);
    window.end = known === limit ? end : known;
    return window;
  }

  async #readUpTo(start: number, limit: number): Promise<number> {
    if (!this.#extents) return this.#seek(start, limit);
    try {
      return await this.#map(this.#extents, start, limit);
    } catch (error) {
      if (!NO_MAP.includes(codeOf(error) ?? '')) throw error;
      this.#extents = undefined;
      return this.#seek(start, limit);
    }
  }

  async #map(extents: Pick<ExtentReader, 'read'>, start: number, limit: number): Promise<number> {
    const { count, logical, physical, length, flags, next } = await extents.read({ start, end: limit, sync: true });
    for (let n = 0; n < count; n++) {
      const flag = flags[n]!;
      const isUncertain = (flag & EXTENT_UNCERTAIN) !== 0;
      // Synced, it reads as zeros, unless its other flags say that nobody knows yet.
      if ((flag & EXTENT_UNWRITTEN) !== 0 && !isUncertain) continue;
      const from = logical[n]!;
      this.#add(from, from + length[n]!, isUncertain ? Number.NaN : physical[n]! - from, start, limit);
    }
    return next === undefined || next > limit ? limit : next;
  }

  async #seek(start: number, limit: number): Promise<number> {
    let at = start;
    for (let n = 0; n < WINDOW_RANGES; n++) {
      const range = await nextData(this.fd, BigInt(at));
      if (!range || range.start >= limit) return limit;
      at = Number(range.end);
      this.#add(Number(range.start), at, Number.NaN, start, limit);
      if (at >= limit) return limit;
    }
    return at;
  }

  /** A file system cuts extents as it likes, and may begin before what was asked for. */
  #add(offset: number, end: number, shift: number, start: number, limit: number): void {
    const window = this.#window;
    const last = window.count - 1;
    const begin = Math.max(offset, start);
    const stop = Math.min(end, limit);
    if (begin >= stop) return;
    if (last >= 0 && window.ends[last] === begin && Object.is(window.shifts[last], shift)) {
      window.ends[last] = stop;
      return;
    }
    window.offsets[last + 1] = begin;
    window.ends[last + 1] = stop;
    window.shifts[last + 1] = shift;
    window.count = last + 2;
  }
}
