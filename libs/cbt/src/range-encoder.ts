import type { RangeBatch } from '#backends/extent-source';

/**
 * Ranges as protobuf, straight into bytes (protobuf encoding guide; field numbers: reference of each proto in proto/). All
 * gRPC services encode a response alike, but for the number of the block type:
 *   1 block_metadata_type (varint), 2 the capacity (varint), 3 repeated { 1 offset, 2 length } (varints)
 * A field of value zero is absent, as proto3 wants. No range takes more than 24 bytes, so no message reaches 4 MiB, which
 * is all that clients take by default.
 */
export class RangeEncoder {
  private readonly head: Buffer;
  private readonly rangeBytes: number;
  private end = 0;

  /**
   * @param blockType the service's number of VARIABLE_LENGTH
   * @param capacityBytes exact below 2^53
   */
  constructor(
    blockType: number,
    private readonly capacityBytes: number,
  ) {
    const head = Buffer.alloc(2 + 2 * MAX_VARINT);
    let at = 0;
    if (blockType !== 0) {
      head[at++] = TYPE;
      at = putVarint(head, at, blockType);
    }
    if (capacityBytes !== 0) {
      head[at++] = CAPACITY;
      at = putVarint(head, at, capacityBytes);
    }
    this.head = head.subarray(0, at);
    this.rangeBytes = 4 + 2 * putVarint(new Uint8Array(MAX_VARINT), 0, capacityBytes);
  }

  /**
   * One message with the ranges `from` to `to` of the batch. Throws when they are out of order or out of the volume: a
   * wrong answer must not leave the house. The bytes may be given to `recycle` once they have been copied elsewhere.
   */
  encode(batch: RangeBatch, from: number, to: number): Buffer {
    const { offsets, lengths } = batch;
    const { capacityBytes } = this;
    const bytes = blank(this.head.length + (to - from) * this.rangeBytes + SLACK);
    const view = new DataView(bytes.buffer);
    bytes.set(this.head);
    // A buffer's length may be beyond 31 bits, and V8 would take every place for such a number: a fifth of the time.
    let at = this.head.length | 0;
    let { end } = this;
    // Neighbours have the upper part of the offset and the length in common: made once, and stored four bytes at a time.
    // Byte by byte a range took 21 ns, like this 6.
    let base = -GROUPS_OF_4;
    let lastLength = -1;
    let highWord = 0;
    let highBytes = 0;
    let lengthWord = 0;
    let lengthBytes = 0;
    for (let n = from; n < to; n++) {
      const offset = offsets[n] as number;
      const length = lengths[n] as number;
      if (!(offset >= end && length > 0 && offset + length <= capacityBytes)) throw this.misplaced(offset, length, end);
      end = offset + length;
      let low = offset - base;
      if (low >= GROUPS_OF_4 || length >= GROUPS_OF_3) {
        const high = Math.floor(offset / GROUPS_OF_4);
        if (high === 0 || high >= GROUPS_OF_4 || length >= GROUPS_OF_3) {
          at = putRange(bytes, at, offset, length);
          continue;
        }
        base = high * GROUPS_OF_4;
        low = offset - base;
        highWord = varintWord(high);
        highBytes = varintBytes(high);
      }
      if (length !== lastLength) {
        lastLength = length;
        lengthWord = LENGTH | (varintWord(length) << 8);
        lengthBytes = 1 + varintBytes(length);
      }
      view.setUint32(at, RANGE | ((5 + highBytes + lengthBytes) << 8) | (OFFSET << 16), true);
      view.setUint32(at + 3, spread(low | 0) | MORE, true);
      view.setUint32(at + 7, highWord, true);
      view.setUint32(at + 7 + highBytes, lengthWord, true);
      at += 7 + highBytes + lengthBytes;
    }
    this.end = end;
    return bytes.subarray(0, at);
  }

  recycle(message: Buffer): void {
    if (spares.length < MAX_SPARES && message.buffer.byteLength <= MAX_SPARE_BYTES) spares.push(message.buffer);
  }

  private misplaced(offset: number, length: number, end: number): Error {
    return new Error(`range ${offset}+${length} after ${end}, of ${this.capacityBytes} bytes, cannot be sent`);
  }
}

/** Of a message, when the caller leaves it to us: larger ones move no more bytes a second, and cost memory. */
export const DEFAULT_RANGES = 4_096;
/** Whatever the caller asks for: 2.4 MB at most. */
export const MAX_RANGES = 100_000;

/** How many ranges a message may hold. `maxResults` 0: we decide; else it is a limit, and fewer are always right. */
export const rangesPerMessage = (maxResults: number): number =>
  maxResults === 0 ? DEFAULT_RANGES : Math.min(maxResults, MAX_RANGES);

const TYPE = 0x08;
const CAPACITY = 0x10;
const RANGE = 0x1a;
const OFFSET = 0x08;
const LENGTH = 0x10;
const MAX_VARINT = 10;

const GROUPS_OF_3 = 0x20_0000;
const GROUPS_OF_4 = 0x1000_0000;
/** Four bytes are stored where fewer count. */
const SLACK = 4;
/** On every byte of a varint but its last. */
const MORE = 0x80808080 | 0;

/** Four groups of seven bits, each in a byte of its own. */
const spread = (value: number): number =>
  (value & 0x7f) | ((value << 1) & 0x7f00) | ((value << 2) & 0x7f_0000) | ((value << 3) & 0x7f00_0000);

const varintBytes = (value: number): number => (value < 0x80 ? 1 : value < 0x4000 ? 2 : value < GROUPS_OF_3 ? 3 : 4);

/** Of a number of at most four groups, in the order in which it is stored; bytes beyond its end are anything. */
const varintWord = (value: number): number => spread(value) | (MORE & ((1 << (8 * (varintBytes(value) - 1))) - 1));

/** Any range. Returns where it ends. */
function putRange(bytes: Uint8Array, start: number, offset: number, length: number): number {
  let at = start + 2;
  if (offset !== 0) {
    bytes[at] = OFFSET;
    at = putVarint(bytes, at + 1, offset);
  }
  bytes[at] = LENGTH;
  at = putVarint(bytes, at + 1, length);
  bytes[start] = RANGE;
  bytes[start + 1] = at - start - 2;
  return at;
}

/** Any whole number below 2^64 that a double holds. Returns where it ends. */
function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80;
  bytes[at++] = rest;
  return at;
}

/** New ones for each message would have the garbage collector at work more than the encoder. */
const spares: ArrayBufferLike[] = [];
const MAX_SPARES = 16;
const MAX_SPARE_BYTES = 128 * 1024;

/** At least so long; its content is anything. */
function blank(size: number): Buffer {
  const at = spares.findIndex(spare => spare.byteLength >= size);
  // Never of Node's shared pool, whose other bytes belong to others.
  return Buffer.from(at < 0 ? new ArrayBuffer(size) : (spares.splice(at, 1)[0] as ArrayBuffer));
}
