/**
 * The checksum of an image that grows by changes: SHA-256 of each block of 64 KiB, the last one filled up with zeros; in a
 * file of records, block number (8 bytes, big-endian) and hash (32 bytes), ascending, without the blocks that hold only
 * zeros. The SHA-256 over the capacity (8 bytes) and that file is the checksum of the image, so that an incremental
 * backup need not read what did not change.
 */
import { createHash } from 'node:crypto';
import { BLOCK } from './changed-chunks.js';
import type { FileInput } from './file-input.js';
import type { FileOutput } from './file-output.js';

const RECORD = 40;
const ZEROS = Buffer.alloc(BLOCK);

export const isZero = (bytes: Buffer): boolean => {
  for (let at = 0; at < bytes.length; at += BLOCK) {
    const part = bytes.subarray(at, at + BLOCK);
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
};

/** Undefined for a block of zeros. */
export function sumOf(block: Buffer): Buffer | undefined {
  if (isZero(block)) return undefined;
  const hash = createHash('sha256').update(block);
  if (block.length < BLOCK) hash.update(ZEROS.subarray(block.length));
  return hash.digest();
}

export class ImageChecksum {
  readonly #hash = createHash('sha256');

  constructor(capacityBytes: number) {
    const head = Buffer.alloc(8);
    head.writeBigUInt64BE(BigInt(capacityBytes));
    this.#hash.update(head);
  }

  add(record: Buffer): void {
    this.#hash.update(record);
  }

  digest(): string {
    return this.#hash.digest('hex');
  }
}

export function recordOf(block: number, sum: Buffer): Buffer {
  const record = Buffer.alloc(RECORD);
  record.writeBigUInt64BE(BigInt(block));
  sum.copy(record, 8);
  return record;
}

const blockOf = (record: Buffer): number => Number(record.readBigUInt64BE());

/** The sums of the point before with those of changed blocks in their place, as a stream: blocks come ascending. */
export class MergedSums {
  readonly #checksum: ImageChecksum;
  #next: Buffer | undefined;
  #begun = false;

  constructor(
    private readonly before: FileInput | undefined,
    private readonly after: FileOutput,
    capacityBytes: number,
  ) {
    this.#checksum = new ImageChecksum(capacityBytes);
  }

  async set(block: number, sum: Buffer | undefined): Promise<void> {
    await this.#copyUpTo(block);
    if (this.#next && blockOf(this.#next) === block) await this.#advance();
    if (sum) await this.#write(recordOf(block, sum));
  }

  /** Copies the rest; gives the checksum of the image. */
  async finish(): Promise<string> {
    await this.#copyUpTo(Number.POSITIVE_INFINITY);
    return this.#checksum.digest();
  }

  async #copyUpTo(block: number): Promise<void> {
    if (!this.#begun) await this.#advance();
    this.#begun = true;
    while (this.#next && blockOf(this.#next) < block) {
      await this.#write(this.#next);
      await this.#advance();
    }
  }

  async #advance(): Promise<void> {
    this.#next = await this.before?.take(RECORD);
  }

  async #write(record: Buffer): Promise<void> {
    this.#checksum.add(record);
    await this.after.write(record);
  }
}
