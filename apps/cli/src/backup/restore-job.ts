import { existsSync, statSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { BackupStore, type Point, syncFolder } from './backup-store.js';
import { ImageChecksum, isZero, recordOf, sumOf } from './block-sums.js';
import { BLOCK, CHUNK } from './changed-chunks.js';
import { FileInput } from './file-input.js';
import { contentOf, records } from './point-records.js';
import type { Progress } from './progress.js';

export interface RestoreOptions {
  folder: string;
  /** A file that is not there yet. */
  target: string;
  point?: number;
  say(line: string): void;
  progress: Progress;
}

/** Rebuilds the image of a point and compares its checksum; the file appears under its name only when that is right. */
export async function runRestore({ folder, target, point, say, progress }: RestoreOptions): Promise<Point> {
  const store = await BackupStore.open(folder);
  const wanted = store.chain(point).at(-1)!;
  requireFree(target);
  const temporary = `${target}.${process.pid}.tmp`;
  const file = await open(temporary, 'wx+', 0o600);
  try {
    await rebuild(store, wanted.number, file, progress);
    await file.close();
    // Not over a file that appeared meanwhile.
    requireFree(target);
    await rename(temporary, target);
    await syncFolder(dirname(target));
  } catch (error) {
    await file.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  } finally {
    progress.end();
  }
  say(
    `point ${wanted.number} of volume ${wanted.volume.name}, ${wanted.createdAt}, ${humanBytes(wanted.capacityBytes)}: ` +
      `restored to ${target}, its checksum ${wanted.checksum.slice(0, 16)} is right`,
  );
  return wanted;
}

/** Makes the empty file the image of the point, and compares its checksum. */
export async function rebuild(store: BackupStore, number: number, file: FileHandle, progress: Progress): Promise<void> {
  const chain = store.chain(number);
  const total = chain.reduce((sum, { data }) => sum + data.bytes, 0);
  let done = 0;
  for (const each of chain) {
    await file.truncate(each.capacityBytes);
    await apply(store, each, file, bytes => progress.show(done + bytes, total, done + bytes));
    done += each.data.bytes;
  }
  progress.end();
  await file.sync();
  await verify(file, chain.at(-1)!);
}

function requireFree(target: string): void {
  if (!existsSync(target)) return;
  throw new LauncherError(
    statSync(target).isFile()
      ? `${target} is there already: choose another name`
      : `${target} is no file that could be made: restore to a file, then copy it, e.g. with dd`,
  );
}

async function apply(store: BackupStore, point: Point, file: FileHandle, at: (bytes: number) => void): Promise<void> {
  const input = await FileInput.open(store.path(point.data.file));
  let bytes = 0;
  try {
    for await (const record of records(input)) {
      const { offset, length } = record;
      if (offset + length > point.capacityBytes)
        throw new LauncherError(`${point.data.file} is damaged: a record beyond the end of the image`);
      const content = await contentOf(record);
      if (content) await writeAll(file, content, offset);
      else await writeZeros(file, offset, length);
      bytes += record.bytes.length;
      at(bytes);
    }
    if (input.checksum() !== point.data.sha256)
      throw new LauncherError(`${point.data.file} is damaged: its checksum is not that of its manifest`);
  } catch (error) {
    if (!(error instanceof LauncherError)) throw error;
    throw new LauncherError(`${error.message}; trivet backup check ${store.folder} says what is damaged`);
  } finally {
    await input.close();
  }
}

/** Only over what is no zero, so that holes stay holes. */
async function writeZeros(file: FileHandle, offset: number, length: number): Promise<void> {
  for (let at = 0; at < length; at += CHUNK) {
    const size = Math.min(CHUNK, length - at);
    const found = await readAll(file, offset + at, size);
    if (!isZero(found)) await writeAll(file, Buffer.alloc(size), offset + at);
  }
}

/** What is on the disk now, not what was meant to be written. */
async function verify(file: FileHandle, point: Point): Promise<void> {
  const checksum = new ImageChecksum(point.capacityBytes);
  for (let at = 0; at < point.capacityBytes; at += CHUNK) {
    const chunk = await readAll(file, at, Math.min(CHUNK, point.capacityBytes - at));
    for (let block = 0; block < chunk.length; block += BLOCK) {
      const sum = sumOf(chunk.subarray(block, block + BLOCK));
      if (sum) checksum.add(recordOf((at + block) / BLOCK, sum));
    }
  }
  if (checksum.digest() !== point.checksum)
    throw new LauncherError(`the restored image is not what point ${point.number} was: its checksum differs`);
}

async function writeAll(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, offset + at);
    at += bytesWritten;
  }
}

export async function readAll(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await file.read(bytes, at, length - at, offset + at);
    if (bytesRead === 0) throw new LauncherError('the restored image became shorter while it was read');
    at += bytesRead;
  }
  return bytes;
}
