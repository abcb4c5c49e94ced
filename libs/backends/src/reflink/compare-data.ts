/** Which ranges of two files differ, by reading both: for pools in which no file shares blocks with another one. */
import type { FileHandle } from 'node:fs/promises';
import { eachPiece, type MapPair } from '#backends/reflink/map-pairs';
import { StorageError } from '#platform/errors';

const GRAIN = 4_096;
const PORTION = 1024 * 1024;
/** A hole is read over that is shorter: one read more costs as much. */
const SHORT_HOLE = 64 * 1024;

export interface ComparedFile {
  file: FileHandle;
  size: number;
}

/** `isZero`: the target holds zeros there. */
export type OnDifference = (offset: number, end: number, isZero: boolean) => void;

interface Stretch {
  start: number;
  end: number;
  /** False: a hole all along. */
  inBase: boolean;
  inTarget: boolean;
}

/** Compares what lies in a stretch in portions of `PORTION`; yields after each, for its caller to look around. */
export class DataComparison {
  readonly #base = Buffer.allocUnsafeSlow(PORTION);
  readonly #target = Buffer.allocUnsafeSlow(PORTION);

  constructor(
    private readonly base: ComparedFile,
    private readonly target: ComparedFile,
  ) {}

  /** Differences of a pair in order; resolves to true while there is more. Blocks are compared whole. */
  *portions(pair: MapPair): Generator<{ start: number; end: number; inBase: boolean; inTarget: boolean }> {
    for (const stretch of stretchesOf(pair, this.target.size))
      for (let start = stretch.start; start < stretch.end; start += PORTION)
        yield { ...stretch, start, end: Math.min(start + PORTION, stretch.end) };
  }

  async compare({ start, end, inBase, inTarget }: Stretch, onDifference: OnDifference): Promise<void> {
    const length = end - start;
    const [base, target] = [this.#base.subarray(0, length), this.#target.subarray(0, length)];
    await Promise.all([fill(base, this.base, start, inBase), fill(target, this.target, start, inTarget)]);
    if (base.equals(target)) return;
    for (let at = 0; at < length; at += GRAIN) {
      const stop = Math.min(at + GRAIN, length);
      if (base.compare(target, at, stop, at, stop) === 0) continue;
      onDifference(start + at, start + stop, target.compare(ZEROS, 0, stop - at, at, stop) === 0);
    }
  }
}

const ZEROS = Buffer.alloc(GRAIN);

/** Where either holds data, in whole blocks, short holes included. */
function stretchesOf(pair: MapPair, limit: number): Stretch[] {
  const found: Stretch[] = [];
  eachPiece(pair, (offset, stop, inBase, inTarget) => {
    const start = Math.floor(offset / GRAIN) * GRAIN;
    const end = Math.min(Math.ceil(stop / GRAIN) * GRAIN, limit);
    const last = found.at(-1);
    if (!last || start > last.end + SHORT_HOLE) {
      found.push({ start, end, inBase, inTarget });
      return;
    }
    last.end = Math.max(last.end, end);
    last.inBase ||= inBase;
    last.inTarget ||= inTarget;
  });
  return found;
}

async function fill(into: Buffer, { file, size }: ComparedFile, start: number, hasData: boolean): Promise<void> {
  const wanted = hasData ? Math.max(0, Math.min(into.length, size - start)) : 0;
  for (let done = 0; done < wanted; ) {
    const { bytesRead } = await file.read(into, done, wanted - done, start + done);
    if (bytesRead === 0) throw new StorageError('failed_precondition', 'an image became shorter while it was read');
    done += bytesRead;
  }
  into.fill(0, wanted);
}
