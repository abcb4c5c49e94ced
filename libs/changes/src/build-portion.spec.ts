import { describe, expect, it } from 'vitest';
import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { readPortion } from '#changes/build-portion';
import { decodeChunk } from '#changes/chunk-codec';

type Range = [offset: number, end: number, hole: 0 | 1];

async function* batches(ranges: readonly Range[], size: number): AsyncGenerator<RangeBatch> {
  for (let at = 0; at < ranges.length; at += size) {
    const batch = emptyBatch(size);
    for (const [offset, end, hole] of ranges.slice(at, at + size)) {
      const n = batch.count++;
      batch.offsets[n] = offset;
      batch.lengths[n] = end - offset;
      batch.holes[n] = hole;
    }
    yield batch;
  }
}

async function stored(ranges: readonly Range[], at = 0, keepHoles = true): Promise<Range[]> {
  const portion = await readPortion(() => batches(ranges, 2), at, keepHoles);
  expect(portion.done).toBe(true);
  const found: Range[] = [];
  for (const { body } of portion.chunks) {
    const { count, offsets, lengths, holes } = decodeChunk(body);
    for (let n = 0; n < count; n++) found.push([offsets[n]!, offsets[n]! + lengths[n]!, holes[n] as 0 | 1]);
  }
  expect(portion.ranges).toBe(found.length);
  const sum = (hole: 0 | 1) => found.reduce((bytes, [from, to, kind]) => bytes + (kind === hole ? to - from : 0), 0);
  expect([portion.dataBytes, portion.holeBytes]).toEqual([sum(0), sum(1)]);
  return found;
}

describe('a portion', () => {
  it('begins where what is stored ends, though the source begins before', async () => {
    const ranges: Range[] = [
      [0, 4_096, 0],
      [4_096, 16_384, 1],
      [20_480, 24_576, 0],
    ];
    expect(await stored(ranges, 8_192)).toEqual([
      [8_192, 16_384, 1],
      [20_480, 24_576, 0],
    ]);
  });

  it('holds touching ranges of a kind as one, over batches too', async () => {
    const touching: Range[] = [0, 1, 2, 3, 4].map(n => [n * 512, (n + 1) * 512, n === 4 ? 1 : 0]);
    expect(await stored(touching)).toEqual([
      [0, 2_048, 0],
      [2_048, 2_560, 1],
    ]);
    expect(await stored(touching, 0, false)).toEqual([[0, 2_048, 0]]);
  });

  it('is widened to whole units, each in one range, and what is not all hole is data', async () => {
    expect(
      await stored([
        [100, 200, 0],
        [300, 400, 0],
        [512, 700, 1],
        [700, 1_100, 0],
        [1_536, 2_048, 1],
      ]),
    ).toEqual([
      [0, 512, 0],
      [512, 1_024, 0],
      [1_024, 1_536, 0],
      [1_536, 2_048, 1],
    ]);
  });

  it('ends when it is full, closes its source, and says where to go on', async () => {
    let closed = false;
    async function* endless(from: number): AsyncGenerator<RangeBatch> {
      try {
        for (let at = from; ; ) {
          const batch = emptyBatch(4_096);
          for (; batch.count < 4_096; at += 2 ** 30) {
            batch.offsets[batch.count] = at;
            batch.lengths[batch.count++] = 512;
          }
          yield batch;
        }
      } finally {
        closed = true;
      }
    }
    const portion = await readPortion(endless, 4_096, true);
    expect(portion).toMatchObject({ done: false, at: portion.chunks.at(-1)!.endOffset });
    expect(portion.chunks[0]!.firstOffset).toBe(4_096);
    expect(portion.chunks.length).toBeLessThan(20);
    expect(closed).toBe(true);
  });
});
