/**
 * FS_IOC_FIEMAP: where the bytes of a file lie. One call answers for a window of the file with at most so many extents:
 * memory is bounded, and starting at an offset costs no more than starting at zero.
 *
 * Wire: a head of 32 bytes (start u64, length u64, flags u32, mapped u32, count u32, reserved u32), then 56 bytes for
 * each extent (logical u64, physical u64, length u64, reserved u64[2], flags u32, reserved u32[3]), all little-endian.
 */
import { ioctl } from '#backends/linux/libc';

const FS_IOC_FIEMAP = 0xc020660b;
const HEAD = 32;
const EXTENT = 56;
const FIEMAP_FLAG_SYNC = 1;

export const EXTENT_LAST = 0x1;
export const EXTENT_UNKNOWN = 0x2;
export const EXTENT_DELALLOC = 0x4;
export const EXTENT_ENCODED = 0x8;
export const EXTENT_NOT_ALIGNED = 0x100;
export const EXTENT_INLINE = 0x200;
export const EXTENT_UNWRITTEN = 0x800;
export const EXTENT_SHARED = 0x2000;

/** The physical address says nothing about the content: such an extent counts as changed (invariant C7). */
export const EXTENT_UNCERTAIN = EXTENT_UNKNOWN | EXTENT_DELALLOC | EXTENT_ENCODED | EXTENT_NOT_ALIGNED | EXTENT_INLINE;

/** Extents of one window in order, as columns of `count` entries; bytes. Holes are what lies between. */
export interface ExtentWindow {
  count: number;
  logical: Float64Array;
  physical: Float64Array;
  length: Float64Array;
  flags: Uint32Array;
  /** Where the next window starts; undefined when there are no more extents within the range asked for. */
  next: number | undefined;
}

export interface WindowRange {
  start: number;
  /** Ask no further than this; to the end of the file when absent. */
  end?: number;
  /**
   * Write dirty pages out first. Without it a fresh write has no address yet, and one into preallocated space still
   * shows as unwritten: whoever reads content from the map must ask for it. Counting need not.
   */
  sync: boolean;
}

export interface WindowRequest extends WindowRange {
  maxExtents: number;
}

export const readExtents = (fd: number, { maxExtents, ...range }: WindowRequest): Promise<ExtentWindow> =>
  new ExtentReader(fd, maxExtents).read(range);

const NO_END = 0xffff_ffff_ffff_ffffn;
const TWO_32 = 2 ** 32;
/** High half of the first number that a double does not hold exactly. */
const INEXACT_HIGH = 2 ** 21;

/** Reads window after window into the same memory: a window is good until the next one is read. */
export class ExtentReader {
  readonly #buffer: Buffer;
  /** The same bytes. The kernel writes its own byte order, which on both supported machines is Node's. */
  readonly #words: Uint32Array;
  readonly #logical: Float64Array;
  readonly #physical: Float64Array;
  readonly #length: Float64Array;
  readonly #flags: Uint32Array;

  constructor(
    private readonly fd: number,
    private readonly maxExtents: number,
  ) {
    const memory = new ArrayBuffer(HEAD + EXTENT * maxExtents);
    this.#buffer = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
    this.#logical = new Float64Array(maxExtents);
    this.#physical = new Float64Array(maxExtents);
    this.#length = new Float64Array(maxExtents);
    this.#flags = new Uint32Array(maxExtents);
  }

  async read(range: WindowRange): Promise<ExtentWindow> {
    const { start, end, sync } = range;
    const buffer = this.#buffer.fill(0, 0, HEAD);
    buffer.writeBigUInt64LE(BigInt(start), 0);
    buffer.writeBigUInt64LE(end === undefined ? NO_END - BigInt(start) : BigInt(end - start), 8);
    buffer.writeUInt32LE(sync ? FIEMAP_FLAG_SYNC : 0, 16);
    buffer.writeUInt32LE(this.maxExtents, 24);
    await ioctl('FS_IOC_FIEMAP', this.fd, FS_IOC_FIEMAP, buffer);
    return this.#decode(range);
  }

  /** From halves of 32 bits: with bigints it takes longer than the system call itself. */
  #decode({ start, end }: WindowRange): ExtentWindow {
    const words = this.#words;
    const count = Math.min(words[5]!, this.maxExtents);
    const logical = this.#logical.subarray(0, count);
    const physical = this.#physical.subarray(0, count);
    const length = this.#length.subarray(0, count);
    const flags = this.#flags.subarray(0, count);
    for (let n = 0, at = HEAD / 4; n < count; n++, at += EXTENT / 4) {
      const physicalHigh = words[at + 3]!;
      logical[n] = words[at]! + words[at + 1]! * TWO_32;
      physical[n] = words[at + 2]! + physicalHigh * TWO_32;
      length[n] = words[at + 4]! + words[at + 5]! * TWO_32;
      // An address that cannot be compared exactly says nothing.
      flags[n] = physicalHigh < INEXACT_HIGH ? words[at + 10]! : words[at + 10]! | EXTENT_UNKNOWN;
    }
    // LAST: nothing more in the range. Fewer than there is room for: the same.
    const isLast = count < this.maxExtents || (flags[count - 1]! & EXTENT_LAST) !== 0;
    const after = count === 0 ? start : logical[count - 1]! + length[count - 1]!;
    const next = isLast || (end !== undefined && after >= end) ? undefined : after;
    return { count, logical, physical, length, flags, next };
  }
}
