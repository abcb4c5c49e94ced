/** Images that are a rule and not a file: for streams of a hundred million ranges, and volumes larger than any disk. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ImageRef } from '#backends/block-backend';
import { type ExtentSource, emptyBatch, type RangeBatch } from '#backends/extent-source';
import { StorageError } from '#platform/errors';
import type { FakeState } from '#test/fakes/object/fake-state';

/** Bytes. Range n is at `n * every`; those at or beyond the capacity are not there, and the last is clipped to it. */
export interface SyntheticPattern {
  capacityBytes: number;
  ranges: number;
  every: number;
  /** At most `every`. */
  length: number;
}

const BATCH = 4_096;
const TABLE = `CREATE TABLE IF NOT EXISTS fake_synthetic (image TEXT PRIMARY KEY, capacity_bytes INTEGER NOT NULL,
  ranges INTEGER NOT NULL, every INTEGER NOT NULL, length INTEGER NOT NULL) STRICT`;

export function createSyntheticTable(state: FakeState): void {
  state.write(() => state.run(TABLE));
}

export function saveSynthetic(state: FakeState, imageId: string, pattern: SyntheticPattern): void {
  const { capacityBytes, ranges, every, length } = pattern;
  const fits = [capacityBytes, every, length].every(bytes => Number.isSafeInteger(bytes) && bytes % 512 === 0);
  if (!fits || !Number.isSafeInteger(ranges) || ranges < 0 || capacityBytes < 0 || length <= 0 || length > every)
    throw new Error(`no pattern of whole sectors: ${JSON.stringify(pattern)}`);
  state.run(
    'INSERT OR REPLACE INTO fake_synthetic VALUES (?, ?, ?, ?, ?)',
    imageId,
    capacityBytes,
    ranges,
    every,
    length,
  );
}

/** Answers for synthetic images, and lets `inner` answer for all others. */
export class SyntheticExtents implements ExtentSource {
  constructor(
    private readonly state: FakeState,
    private readonly inner: ExtentSource,
  ) {}

  methodOf(pool: string, signal: AbortSignal): Promise<'extents' | 'compare'> {
    return this.inner.methodOf(pool, signal);
  }

  allocated(image: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    const pattern = this.#pattern(image);
    return pattern ? rangesOf(pattern, from, signal) : this.inner.allocated(image, from, signal);
  }

  changed(base: ImageRef, target: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    const [before, now] = [this.#pattern(base), this.#pattern(target)];
    if (!before && !now) return this.inner.changed(base, target, from, signal);
    if (!before || !now)
      throw new StorageError('failed_precondition', `of ${base.id} and ${target.id} only one is synthetic`);
    return rangesOf(base.id === target.id ? { ...now, ranges: 0 } : now, from, signal);
  }

  #pattern(image: ImageRef): SyntheticPattern | undefined {
    return this.state.get<SyntheticPattern>(
      'SELECT capacity_bytes AS "capacityBytes", ranges, every, length FROM fake_synthetic WHERE image = ?',
      image.id,
    );
  }
}

async function* rangesOf(pattern: SyntheticPattern, from: number, signal: AbortSignal): AsyncGenerator<RangeBatch> {
  const { capacityBytes, every, length } = pattern;
  const count = Math.min(pattern.ranges, Math.ceil(capacityBytes / every));
  // The first that ends after `from`.
  for (let next = Math.max(0, Math.floor((from - length) / every) + 1); next < count; ) {
    const batch = emptyBatch(Math.min(BATCH, count - next));
    for (; batch.count < batch.offsets.length; next++) {
      const offset = next * every;
      batch.offsets[batch.count] = offset;
      batch.lengths[batch.count++] = Math.min(length, capacityBytes - offset);
    }
    await nextTurn();
    signal.throwIfAborted();
    yield batch;
  }
  signal.throwIfAborted();
}
