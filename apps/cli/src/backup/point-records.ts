import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { LauncherError } from '../home.js';
import { CHUNK } from './changed-chunks.js';
import type { FileInput } from './file-input.js';
import type { Range } from './metadata-stream.js';

/** As they stand in a point's data file: see backup-store.ts. */
const ZEROS_KIND = 0;
const DATA_KIND = 1;
const ZSTD_KIND = 2;
const HEAD = 16;

/** Compressed only where it saves an eighth: else it costs time at every restore, and gains nothing. */
const WORTH = 7 / 8;
/** Data of disks come once: a quick level, and a checksum with each frame. */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** A part of the image, at most of CHUNK, as it is stored. */
export interface StoredRecord extends Range {
  kind: number;
  /** Empty where the image has zeros. */
  bytes: Buffer;
}

function head({ offset, length }: Range, kind: number): Buffer {
  const bytes = Buffer.alloc(HEAD);
  bytes.writeBigUInt64BE(BigInt(offset));
  bytes.writeUInt32BE(length, 8);
  bytes.writeUInt32BE(kind, 12);
  return bytes;
}

export const zerosRecord = (part: Range): Buffer[] => [head(part, ZEROS_KIND)];

export async function dataRecord(part: Range, content: Buffer): Promise<Buffer[]> {
  const packed = await compress(content, OPTIONS);
  if (packed.length > content.length * WORTH) return [head(part, DATA_KIND), content];
  const size = Buffer.alloc(4);
  size.writeUInt32BE(packed.length);
  return [head(part, ZSTD_KIND), size, packed];
}

/** Ascending and disjoint. Throws LauncherError where the file ends early or has no record. */
export async function* records(input: FileInput): AsyncGenerator<StoredRecord> {
  let end = 0;
  for (let at = 0; ; ) {
    const found = await input.take(HEAD);
    if (!found) return;
    const offset = Number(found.readBigUInt64BE());
    const length = found.readUInt32BE(8);
    const kind = found.readUInt32BE(12);
    if (offset < end || length === 0 || length > CHUNK || kind > ZSTD_KIND) throw noRecord(input, at);
    const size = kind === ZSTD_KIND ? (await whole(input, 4)).readUInt32BE() : kind === DATA_KIND ? length : 0;
    if (size > length) throw noRecord(input, at);
    const bytes = size === 0 ? Buffer.alloc(0) : await whole(input, size);
    yield { offset, length, kind, bytes };
    end = offset + length;
    at += HEAD + (kind === ZSTD_KIND ? 4 : 0) + size;
  }
}

/** Undefined for zeros. Throws LauncherError when it cannot be what was stored. */
export async function contentOf({ offset, length, kind, bytes }: StoredRecord): Promise<Buffer | undefined> {
  if (kind === ZEROS_KIND) return undefined;
  if (kind === DATA_KIND) return bytes;
  const content = await decompress(bytes, { maxOutputLength: CHUNK }).catch(() => undefined);
  if (content?.length !== length) throw new LauncherError(`the data at offset ${offset} of the image are damaged`);
  return content;
}

const noRecord = ({ path }: FileInput, at: number): LauncherError =>
  new LauncherError(`${path} is damaged: there is no record at byte ${at}`);

async function whole(input: FileInput, length: number): Promise<Buffer> {
  const bytes = await input.take(length);
  if (!bytes) throw new LauncherError(`${input.path} is cut off`);
  return bytes;
}
