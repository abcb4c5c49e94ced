/**
 * How long a cut stalls the writers of its source. A clone costs by extents, a copy by bytes; both speeds begin with a
 * careful figure and follow what this pool really does.
 */
import type { CutPrediction } from '#backends/block-backend';
import { readExtents } from '#backends/linux/fiemap';
import { nextData } from '#backends/linux/libc';
import { codeOf } from '#backends/reflink/file-errors';

/** Measured on XFS with 100,000 and 131,072 extents of 4 KiB. */
const EXTENTS_PER_MS = 60;
const BYTES_PER_MS = 300_000;
/** Below it a measurement says more about the timer than about the disk. */
const TELLING_MS = 20;
/** Weight of the newest measurement. */
const WEIGHT = 0.3;
const WINDOW = 4096;

interface Count {
  extents: number;
  /** There are more than the limit. */
  more: boolean;
}

/**
 * Counts extents up to `limit`; what is not written out yet is counted as it lies in memory. Where the file system has
 * no map of them (tmpfs), ranges of data.
 */
export async function countExtents(fd: number, limit: number, signal: AbortSignal): Promise<Count> {
  try {
    return await countMapped(fd, limit, signal);
  } catch (error) {
    if (!['EOPNOTSUPP', 'ENOTSUP', 'ENOTTY'].includes(codeOf(error) ?? '')) throw error;
    return countRanges(fd, limit, signal);
  }
}

async function countRanges(fd: number, limit: number, signal: AbortSignal): Promise<Count> {
  let range = await nextData(fd, 0n);
  let extents = 0;
  for (; range && extents < limit; extents++) {
    signal.throwIfAborted();
    range = await nextData(fd, range.end);
  }
  return { extents, more: range !== undefined };
}

async function countMapped(fd: number, limit: number, signal: AbortSignal): Promise<Count> {
  let extents = 0;
  let start: number | undefined = 0;
  while (start !== undefined) {
    signal.throwIfAborted();
    const maxExtents = Math.min(WINDOW, limit - extents);
    if (maxExtents <= 0) return { extents, more: true };
    const window = await readExtents(fd, { start, maxExtents, sync: false });
    extents += window.count;
    start = window.next;
  }
  return { extents, more: false };
}

export class CutSpeed {
  #extentsPerMs = EXTENTS_PER_MS;
  #bytesPerMs = BYTES_PER_MS;

  clone({ extents, more }: Count): CutPrediction {
    return { extents, more, stallMs: Math.ceil(extents / this.#extentsPerMs) };
  }

  copy(counted: Count, allocatedBytes: bigint): CutPrediction {
    return { ...counted, stallMs: Math.ceil(Number(allocatedBytes) / this.#bytesPerMs) };
  }

  cloned(extents: number, ms: number): void {
    if (ms >= TELLING_MS && extents > 0) this.#extentsPerMs = average(this.#extentsPerMs, extents / ms);
  }

  copied(bytes: number, ms: number): void {
    if (ms >= TELLING_MS && bytes > 0) this.#bytesPerMs = average(this.#bytesPerMs, bytes / ms);
  }
}

const average = (known: number, measured: number): number => known * (1 - WEIGHT) + measured * WEIGHT;
