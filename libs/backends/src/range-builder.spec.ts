import { describe, expect, it } from 'vitest';
import { RangeBuilder } from '#backends/range-builder';

type Piece = [offset: number, end: number, hole: 0 | 1];

const build = (pieces: Piece[], from = 0, limit = 1 << 30): Piece[] => {
  const builder = new RangeBuilder(from, limit);
  for (const piece of pieces) builder.add(...piece);
  return taken(builder);
};
const taken = (builder: RangeBuilder): Piece[] => {
  const batch = builder.take();
  if (!batch) return [];
  return Array.from({ length: batch.count }, (_, n) => [
    batch.offsets[n]!,
    batch.offsets[n]! + batch.lengths[n]!,
    batch.holes[n] as 0 | 1,
  ]);
};

describe('ranges', () => {
  it('that touch become one when they are of one kind', () => {
    const pieces: Piece[] = [
      [0, 512, 0],
      [512, 2_048, 0],
      [2_048, 4_096, 1],
      [4_096, 8_192, 1],
      [16_384, 20_480, 1],
    ];
    expect(build(pieces)).toEqual([
      [0, 2_048, 0],
      [2_048, 8_192, 1],
      [16_384, 20_480, 1],
    ]);
  });

  it('are whole sectors, and a hole has no part of another sector', () => {
    expect(build([[700, 1_000, 0]])).toEqual([[512, 1_024, 0]]);
    expect(
      build([
        [700, 1_030, 0],
        [1_200, 1_300, 0],
        [1_540, 1_600, 0],
      ]),
    ).toEqual([[512, 2_048, 0]]);
    expect(build([[700, 5_000, 1]])).toEqual([
      [512, 1_024, 0],
      [1_024, 4_608, 1],
      [4_608, 5_120, 0],
    ]);
    expect(build([[700, 900, 1]])).toEqual([[512, 1_024, 0]]);
    expect(
      build([
        [0, 700, 0],
        [700, 2_048, 1],
      ]),
    ).toEqual([
      [0, 1_024, 0],
      [1_024, 2_048, 1],
    ]);
  });

  it('end with the image, whatever its size', () => {
    expect(build([[4_096, 8_192, 0]], 0, 5_000)).toEqual([[4_096, 5_000, 0]]);
    expect(build([[4_096, 8_192, 1]], 0, 5_000)).toEqual([[4_096, 5_000, 1]]);
    expect(build([[4_700, 4_900, 1]], 0, 4_900)).toEqual([[4_608, 4_900, 0]]);
    expect(build([[8_192, 9_000, 0]], 0, 8_192)).toEqual([]);
  });

  it('begin with the first that ends after the start', () => {
    const pieces: Piece[] = [
      [0, 4_096, 0],
      [8_192, 12_288, 0],
    ];
    expect(build(pieces, 4_095)).toEqual(pieces);
    expect(build(pieces, 4_096)).toEqual([[8_192, 12_288, 0]]);
    expect(build(pieces, 12_288)).toEqual([]);
  });

  it('do not overlap over batches, of which each is its own', () => {
    const builder = new RangeBuilder(0, 1 << 30);
    builder.add(0, 700, 0);
    const first = builder.take()!;
    builder.add(700, 2_000, 0);
    builder.add(2_048, 4_096, 1);
    expect(taken(builder)).toEqual([
      [1_024, 2_048, 0],
      [2_048, 4_096, 1],
    ]);
    expect([first.count, first.offsets[0], first.lengths[0]]).toEqual([1, 0, 1_024]);
    expect(builder.take()).toBeUndefined();
  });

  it('may be many', () => {
    const pieces = Array.from({ length: 10_000 }, (_, n): Piece => [n * 1_024, n * 1_024 + 512, n % 3 === 0 ? 1 : 0]);
    expect(build(pieces)).toEqual(pieces);
  });
});
