import type { RangeBatch } from '#backends/extent-source';
import { RangeCursor } from '#changes/range-cursor';
import { RangeWriter } from '#changes/range-writer';

/**
 * What two neighbouring steps say together: the ranges of both, and where they overlap what the later one says. Both
 * ascending and disjoint, so is the outcome. Memory: a batch of each.
 */
export async function* overlay(
  earlier: AsyncIterable<RangeBatch>,
  later: AsyncIterable<RangeBatch>,
): AsyncGenerator<RangeBatch> {
  const a = new RangeCursor(earlier);
  const b = new RangeCursor(later);
  const writer = new RangeWriter();
  try {
    await a.pull();
    await b.pull();
    while (!a.done || !b.done) {
      if (b.done || (!a.done && a.end <= b.offset)) {
        writer.add(a.offset, a.end, a.hole);
        if (!a.next()) await a.pull();
      } else if (a.done || b.end <= a.offset) {
        writer.add(b.offset, b.end, b.hole);
        if (!b.next()) await b.pull();
      } else {
        if (a.offset < b.offset) writer.add(a.offset, b.offset, a.hole);
        // What lies under the later one is gone; the later one itself comes when nothing is left under it.
        a.offset = b.end;
        if (a.end <= b.end && !a.next()) await a.pull();
      }
      if (writer.full) yield writer.take()!;
    }
    const rest = writer.finish();
    if (rest) yield rest;
  } finally {
    await Promise.all([a.close(), b.close()]);
  }
}

/** Any number of steps, oldest first. As a tree, so that a range passes through few of them. */
export function overlayAll(steps: readonly AsyncIterable<RangeBatch>[]): AsyncIterable<RangeBatch> {
  if (steps.length === 0) return none();
  if (steps.length === 1) return steps[0]!;
  const middle = steps.length >> 1;
  return overlay(overlayAll(steps.slice(0, middle)), overlayAll(steps.slice(middle)));
}

export async function* none(): AsyncGenerator<RangeBatch> {
  // No ranges.
}

/** What an image holds after steps: what it held before, as they changed it, without their holes. */
export function fold(
  allocated: AsyncIterable<RangeBatch>,
  steps: readonly AsyncIterable<RangeBatch>[],
): AsyncIterable<RangeBatch> {
  return shaped(overlayAll([allocated, ...steps]), {
    from: 0,
    end: Number.MAX_SAFE_INTEGER,
    keepHoles: false,
    kinds: true,
  });
}

export interface Shape {
  /** No range ends at or before it. */
  from: number;
  /** No range reaches beyond it. */
  end: number;
  keepHoles: boolean;
  /** false: touching ranges become one whatever their kinds are. */
  kinds: boolean;
}

/** The last stage before a reader: clipped, without what lies before, coalesced over batches. */
export async function* shaped(batches: AsyncIterable<RangeBatch>, shape: Shape): AsyncGenerator<RangeBatch> {
  const { from, end: limit, keepHoles, kinds } = shape;
  const writer = new RangeWriter(kinds);
  for await (const batch of batches) {
    const { count, offsets, lengths, holes } = batch;
    // All of most batches is wanted: they are handed on by the run.
    const last = count - 1;
    const whole =
      count > 0 &&
      offsets[0]! + lengths[0]! > from &&
      offsets[last]! + lengths[last]! <= limit &&
      (keepHoles || !holes.subarray(0, count).includes(1));
    if (whole) {
      for (let n = 0; n < count; ) {
        n = writer.addRun(batch, n);
        if (writer.full) yield writer.take()!;
      }
      continue;
    }
    for (let n = 0; n < count; n++) {
      const offset = offsets[n]!;
      const end = Math.min(offset + lengths[n]!, limit);
      if (end <= from || offset >= limit || (!keepHoles && holes[n] === 1)) continue;
      writer.add(offset, end, holes[n]!);
      if (writer.full) yield writer.take()!;
    }
  }
  const rest = writer.finish();
  if (rest) yield rest;
}
