/**
 * The checksum of an image that grows by changes: SHA-256 of each block of 64 KiB, the last one filled up with zeros; in a
 * file of records, block number (8 bytes, big-endian) and hash (32 bytes), ascending, without the blocks that hold only
 * zeros. The SHA-256 over the capacity (8 bytes) and that file is the checksum of the image, so that an incremental
 * backup need not read what did not change.
 */
import { createHash } from 'node:crypto';
import { LauncherError } from '../home.js';
import type { Point } from './backup-store.js';
import { BLOCK } from './changed-chunks.js';
import { FileInput } from './file-input.js';
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

/** What the blocks of a point should be, asked in their order. */
export class SumCursor {
  #next: Buffer | undefined;

  private constructor(private readonly input: FileInput) {}

  /** Throws LauncherError when the file is not what its manifest says. */
  static async open(path: string, { sums, capacityBytes, checksum }: Point): Promise<SumCursor> {
    const whole = await FileInput.open(path);
    const image = new ImageChecksum(capacityBytes);
    try {
      for (let record = await whole.take(RECORD); record; record = await whole.take(RECORD)) image.add(record);
      if (whole.checksum() !== sums.sha256 || image.digest() !== checksum)
        throw new LauncherError('the checksums are damaged: they are not those of the manifest');
    } finally {
      await whole.close();
    }
    const cursor = new SumCursor(await FileInput.open(path));
    cursor.#next = await cursor.input.take(RECORD);
    return cursor;
  }

  /** Undefined for a block of zeros. */
  async of(block: number): Promise<Buffer | undefined> {
    while (this.#next && blockOf(this.#next) < block) this.#next = await this.input.take(RECORD);
    return this.#next && blockOf(this.#next) === block ? this.#next.subarray(8) : undefined;
  }

  close(): Promise<void> {
    return this.input.close();
  }
}

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

  /** Goes on at this block, after the sums of those before it, which are in `after` already. */
  async resumeAt(block: number, written: FileInput): Promise<void> {
    for (let record = await written.take(RECORD); record; record = await written.take(RECORD))
      this.#checksum.add(record);
    this.#begun = true;
    do await this.#advance();
    while (this.#next && blockOf(this.#next) < block);
  }

  async set(block: number, sum: Buffer | undefined): Promise<void> {
    await this.#copyUpTo(block);
    if (this.#next && blockOf(this.#next) === block) await this.#advance();
    if (sum) await this.#write(recordOf(block, sum));
  }

  /** Everything below this block is written. */
  reach(block: number): Promise<void> {
    return this.#copyUpTo(block);
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
