/**
 * The content of files: cloning, copying, reserving. All of it may take minutes; `signal` is looked at between portions
 * (a clone is one portion: the kernel makes it of one instant, and cannot be asked to stop).
 */
import { constants } from 'node:fs';
import { copyFile, type FileHandle, open, statfs } from 'node:fs/promises';
import { isInPlace, setInPlace } from '#backends/linux/inode-flags';
import { FALLOC_FL_KEEP_SIZE, FALLOC_FL_UNSHARE_RANGE, fallocate, nextData } from '#backends/linux/libc';
import { codeOf } from '#backends/reflink/file-errors';

const COPY_BYTES = 1024 * 1024;
/** One call: fast where blocks are only reserved, and half a second of writing where they are copied. */
const RESERVE_BYTES = 64n * 1024n * 1024n * 1024n;
/** Of `st_blocks`. */
const SECTOR = 512n;
const UNSHARE_BYTES = 64n * 1024n * 1024n;
const NO_UNSHARE = ['EOPNOTSUPP', 'ENOTSUP', 'EINVAL', 'ENOSYS'];

/** FICLONE: all of the source as of one instant, sharing its blocks. `target` must not exist. */
export async function cloneFile(source: string, target: string): Promise<void> {
  try {
    await copyFile(source, target, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
  } catch (error) {
    if (codeOf(error) !== 'EINVAL') throw error;
    await makeAlike(source, target);
    await copyFile(source, target, constants.COPYFILE_FICLONE_FORCE);
  }
}

/** btrfs: a file that is overwritten in place, without checksums, shares blocks with such files only. */
async function makeAlike(source: string, target: string): Promise<void> {
  const [from, to] = [await open(source, 'r'), await open(target, 'wx', 0o600)];
  try {
    await setInPlace(to.fd, await isInPlace(from.fd));
  } finally {
    await Promise.all([from.close(), to.close()]);
  }
}

/** Thrown by copyData when somebody writes to the source meanwhile: the copy would be of no instant. */
export class SourceChanged extends Error {}

/**
 * Copies the data of `source` into the empty file `target`, holes left out, with a bounded buffer, and gives it the same
 * size. Returns how many bytes were moved.
 */
export async function copyData(source: FileHandle, target: FileHandle, signal: AbortSignal): Promise<number> {
  const before = await source.stat({ bigint: true });
  const buffer = Buffer.allocUnsafe(COPY_BYTES);
  let moved = 0;
  for (let offset = 0n; offset < before.size; ) {
    const range = await nextData(source.fd, offset);
    if (!range) break;
    const end = min(range.end, before.size);
    for (let at = Number(range.start); at < end; ) {
      signal.throwIfAborted();
      const { bytesRead } = await source.read(buffer, 0, Math.min(COPY_BYTES, Number(end) - at), at);
      if (bytesRead === 0) throw new SourceChanged();
      await writeFully(target, buffer, bytesRead, at);
      at += bytesRead;
      moved += bytesRead;
    }
    offset = range.end;
  }
  await target.truncate(Number(before.size));
  const after = await source.stat({ bigint: true });
  if (after.mtimeNs !== before.mtimeNs || after.size !== before.size) throw new SourceChanged();
  return moved;
}

async function writeFully(target: FileHandle, buffer: Buffer, length: number, position: number): Promise<void> {
  for (let done = 0; done < length; ) {
    const { bytesWritten } = await target.write(buffer, done, length - done, position + done);
    done += bytesWritten;
  }
}

/** Reserves blocks for a range that has none, also beyond the end of the file, whose size stays. */
export async function reserve(file: FileHandle, from: bigint, to: bigint, signal: AbortSignal): Promise<void> {
  await requireFree(file, to);
  for (let at = from; at < to; at += RESERVE_BYTES) {
    signal.throwIfAborted();
    await fallocate(file.fd, FALLOC_FL_KEEP_SIZE, at, min(RESERVE_BYTES, to - at));
  }
}

/** Before anything is taken: what is given back in the end was missing meanwhile to hosts that write to thin volumes. */
export async function requireFree(file: FileHandle, size: bigint): Promise<void> {
  const { blocks } = await file.stat({ bigint: true });
  const { bavail, bsize } = await statfs(`/proc/self/fd/${file.fd}`, { bigint: true });
  if (size - blocks * SECTOR > bavail * bsize) throw Object.assign(new Error('not enough blocks'), { code: 'ENOSPC' });
}

/** Whether this file system gives shared blocks copies when it is asked to (XFS). */
export async function canUnshare(file: FileHandle): Promise<boolean> {
  try {
    await fallocate(file.fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE, 0n, 1n);
    return true;
  } catch (error) {
    if (NO_UNSHARE.includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}

/** Gives the file blocks of its own wherever it shares them, so that no later write can find the pool full. */
export async function unshare(file: FileHandle, size: bigint, signal: AbortSignal): Promise<void> {
  for (let at = 0n; at < size; at += UNSHARE_BYTES) {
    signal.throwIfAborted();
    const mode = FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE;
    await fallocate(file.fd, mode, at, min(UNSHARE_BYTES, size - at));
  }
}

function min(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}
