import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { crc32c } from '#changes/crc32c';

/**
 * How a step's ranges are stored: chunks that can each be read alone, from any range on.
 *
 *   0   u8   version, 1
 *   1   u8   shift: offsets and lengths count in units of 2^shift bytes
 *   2   u16  restarts
 *   4   u32  ranges
 *   8   u64  offset of the first range, bytes
 *   16  u64  end of the last range, bytes
 *   24  u32  CRC-32C of everything else
 *   28  ranges: varint gap since the end of the one before, varint (length - 1) * 2 + hole
 *   …   restarts, one every 1,024 ranges, the first at range 1,024: u64 end of the range before, u32 place of the range
 *
 * Little-endian; varints of seven bits, low ones first. A random change of 4 KiB on 1 TiB takes four to five bytes.
 */
const VERSION = 1;
const HEAD = 28;
const RESTART = 12;
const RESTART_EVERY = 1_024;
const CRC_AT = 24;
/** Of the ranges' bytes; with head and restarts a chunk stays below 256 KiB. */
export const CHUNK_BYTES = 192 * 1024;
const MAX_VARINTS = 20;
/** Of block devices: every offset and length is a multiple. Units of 4 KiB would save a byte in a hundred. */
const SHIFT = 9;
const UNIT = 2 ** SHIFT;

export class BrokenChunk extends Error {}

export interface EncodedChunk {
  body: Buffer;
  count: number;
  firstOffset: number;
  endOffset: number;
}

/** Encodes ascending ranges chunk by chunk; nothing but the chunk under way is kept. */
export class ChunkEncoder {
  private readonly bytes = Buffer.allocUnsafe(CHUNK_BYTES);
  private readonly restarts: { before: number; place: number }[] = [];
  private length = 0;
  private count = 0;
  private first = 0;
  private end = 0;

  /** Every offset and length is a multiple of 512. Adds as much of the batch as fits, from range `start` on; returns where it stopped: then `take` a chunk. */
  add({ count, offsets, lengths, holes }: RangeBatch, start = 0): number {
    for (let n = start; n < count; n++) {
      if (this.length > CHUNK_BYTES - MAX_VARINTS || this.count === 0xffff_ffff) return n;
      const offset = offsets[n]!;
      if (this.count === 0) this.first = this.end = offset;
      else if (this.count % RESTART_EVERY === 0) this.restarts.push({ before: this.end, place: this.length });
      this.varint((offset - this.end) / UNIT);
      this.varint((lengths[n]! / UNIT - 1) * 2 + holes[n]!);
      this.end = offset + lengths[n]!;
      this.count++;
    }
    return count;
  }

  /** Undefined when nothing was added since the last one. */
  take(): EncodedChunk | undefined {
    if (this.count === 0) return undefined;
    const { restarts, length, count, first, end } = this;
    const body = Buffer.allocUnsafe(HEAD + length + restarts.length * RESTART);
    body.writeUInt8(VERSION, 0);
    body.writeUInt8(SHIFT, 1);
    body.writeUInt16LE(restarts.length, 2);
    body.writeUInt32LE(count, 4);
    body.writeBigUInt64LE(BigInt(first), 8);
    body.writeBigUInt64LE(BigInt(end), 16);
    this.bytes.copy(body, HEAD, 0, length);
    restarts.forEach(({ before, place }, n) => {
      body.writeBigUInt64LE(BigInt(before), HEAD + length + n * RESTART);
      body.writeUInt32LE(place, HEAD + length + n * RESTART + 8);
    });
    body.writeUInt32LE(checksum(body), CRC_AT);
    this.restarts.length = this.length = this.count = 0;
    return { body, count, firstOffset: first, endOffset: end };
  }

  private varint(value: number): void {
    const { bytes } = this;
    let rest = value;
    while (rest >= 0x80) {
      bytes[this.length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    bytes[this.length++] = rest;
  }
}

/** The checksum is made as if its own place held zero. */
const checksum = (body: Buffer): number => (crc32c(body, 0, CRC_AT) ^ crc32c(body, CRC_AT + 4)) >>> 0;

/** All ranges of a chunk that reach beyond `from`; throws as `ChunkDecoder` does. */
export function decodeChunk(body: Buffer, from = 0): RangeBatch {
  const decoder = new ChunkDecoder(body, from);
  const batch = emptyBatch(decoder.left);
  decoder.next(batch);
  return batch;
}

/**
 * The ranges of a chunk that reach beyond `from`, in batches: a reader of many chunks at once keeps their bodies, and of
 * ranges, which take ten times the room, only those at hand. Throws BrokenChunk for whatever is not exactly what was
 * written: at once when the checksum tells it.
 */
export class ChunkDecoder {
  private readonly unit: number;
  private readonly total: number;
  private readonly stop: number;
  private at = HEAD;
  private end: number;
  private done = 0;

  constructor(
    private readonly body: Buffer,
    private readonly from = 0,
  ) {
    if (body.length < HEAD || body.readUInt8(0) !== VERSION) throw new BrokenChunk('not a chunk of this version');
    if (checksum(body) !== body.readUInt32LE(CRC_AT)) throw new BrokenChunk('its checksum is wrong');
    this.unit = 2 ** body.readUInt8(1);
    const restarts = body.readUInt16LE(2);
    this.total = body.readUInt32LE(4);
    this.stop = body.length - restarts * RESTART;
    this.end = Number(body.readBigUInt64LE(8));
    if (from > this.end) this.seek(restarts);
  }

  /** No more than so many ranges are to come. */
  get left(): number {
    return this.total - this.done;
  }

  /** At most as many ranges as the batch has room for, into it; false after the last one. */
  next(batch: RangeBatch): boolean {
    const { body, unit, total, from } = this;
    let { at, end, done } = this;
    const { offsets, lengths, holes } = batch;
    const limit = offsets.length;
    let count = 0;
    while (done < total && count < limit) {
      // One byte or two, as it happens: a branch here is taken wrongly every other time, and cost as much as all the rest.
      const first = body[at]!;
      const second = body[at + 1]!;
      const two = first >> 7;
      at += 1 + two;
      let gap = (first & 0x7f) | (((second & 0x7f) << 7) & -two);
      if ((second & (two << 7)) !== 0) {
        for (let scale = 0x4000; ; scale *= 0x80) {
          const byte = body[at++]!;
          gap += (byte & 0x7f) * scale;
          if (byte < 0x80) break;
        }
      }
      let tail = body[at++]!;
      if (tail >= 0x80) {
        tail &= 0x7f;
        for (let scale = 0x80; ; scale *= 0x80) {
          const byte = body[at++]!;
          tail += (byte & 0x7f) * scale;
          if (byte < 0x80) break;
        }
      }
      const hole = tail % 2;
      const offset = end + gap * unit;
      const length = ((tail - hole) / 2 + 1) * unit;
      end = offset + length;
      done++;
      if (end <= from) continue;
      offsets[count] = offset;
      lengths[count] = length;
      holes[count++] = hole;
    }
    if (done === total && (at !== this.stop || end !== Number(body.readBigUInt64LE(16))))
      throw new BrokenChunk('its ranges do not add up');
    this.at = at;
    this.end = end;
    this.done = done;
    batch.count = count;
    return count > 0;
  }

  /** To the last restart before which everything ends at or before `from`. */
  private seek(restarts: number): void {
    const { body, stop, from } = this;
    let low = 0;
    let high = restarts;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Number(body.readBigUInt64LE(stop + middle * RESTART)) <= from) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return;
    this.end = Number(body.readBigUInt64LE(stop + (low - 1) * RESTART));
    this.at = HEAD + body.readUInt32LE(stop + (low - 1) * RESTART + 8);
    this.done = low * RESTART_EVERY;
  }
}
