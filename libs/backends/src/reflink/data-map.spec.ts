import { describe, expect, it } from 'vitest';
import {
  EXTENT_DELALLOC,
  EXTENT_ENCODED,
  EXTENT_INLINE,
  EXTENT_NOT_ALIGNED,
  EXTENT_SHARED,
  EXTENT_UNKNOWN,
  EXTENT_UNWRITTEN,
  type ExtentWindow,
  type WindowRange,
} from '#backends/linux/fiemap';
import { FileMap } from '#backends/reflink/data-map';

type Extent = [logical: number, length: number, physical: number, flags?: number];

const window = (extents: Extent[], next?: number): ExtentWindow => ({
  count: extents.length,
  logical: Float64Array.from(extents, ([logical]) => logical),
  length: Float64Array.from(extents, ([, length]) => length),
  physical: Float64Array.from(extents, ([, , physical]) => physical),
  flags: Uint32Array.from(extents, ([, , , flags]) => flags ?? 0),
  next,
});

async function segments(
  extents: Extent[],
  {
    size = 1_000_000,
    start = 0,
    end = 1_000_000,
    next,
  }: { size?: number; start?: number; end?: number; next?: number },
) {
  const asked: WindowRange[] = [];
  const map = new FileMap(-1, size, {
    read: async range => {
      asked.push(range);
      return window(extents, next);
    },
  });
  const { count, offsets, ends, shifts, end: known } = await map.read(start, end);
  return { asked, known, found: Array.from({ length: count }, (_, n) => [offsets[n], ends[n], shifts[n]]) };
}

describe('the map of a file', () => {
  it('is read written out, and holds what is written', async () => {
    const { asked, found } = await segments(
      [
        [0, 4_096, 100_000],
        [8_192, 4_096, 300_000, EXTENT_UNWRITTEN],
        [16_384, 4_096, 200_000, EXTENT_SHARED],
      ],
      {},
    );
    expect(asked).toEqual([{ start: 0, end: 1_000_000, sync: true }]);
    expect(found).toEqual([
      [0, 4_096, 100_000],
      [16_384, 20_480, 200_000 - 16_384],
    ]);
  });

  it.each([
    ['unknown', EXTENT_UNKNOWN],
    ['not allocated yet', EXTENT_DELALLOC],
    ['encoded', EXTENT_ENCODED],
    ['not aligned', EXTENT_NOT_ALIGNED],
    ['inline', EXTENT_INLINE],
    ['unknown, though it says unwritten', EXTENT_UNWRITTEN | EXTENT_DELALLOC],
  ])('has data without an address where it is %s', async (_, flags) => {
    expect((await segments([[0, 4_096, 4_096, flags]], {})).found).toEqual([[0, 4_096, Number.NaN]]);
  });

  it('says the same however its extents are cut', async () => {
    const whole = await segments([[4_096, 12_288, 50_000]], {});
    const cut = await segments(
      [
        [4_096, 4_096, 50_000],
        [8_192, 8_192, 54_096, EXTENT_SHARED],
      ],
      {},
    );
    expect(cut.found).toEqual(whole.found);
    const encoded: Extent[] = [
      [0, 4_096, 7, EXTENT_ENCODED],
      [4_096, 4_096, 7, EXTENT_ENCODED],
    ];
    expect((await segments(encoded, {})).found).toEqual([[0, 8_192, Number.NaN]]);
  });

  it('begins and ends where it was asked to, and with the file', async () => {
    const extents: Extent[] = [[0, 100_000, 500_000]];
    expect((await segments(extents, { start: 4_096, end: 8_192 })).found).toEqual([[4_096, 8_192, 500_000]]);
    const short = await segments(extents, { size: 50_000 });
    expect(short).toMatchObject({ found: [[0, 50_000, 500_000]], known: 1_000_000 });
    expect(await segments(extents, { size: 50_000, start: 50_000 })).toEqual({
      asked: [],
      found: [],
      known: 1_000_000,
    });
  });

  it('is known up to the end of the last extent when there are more', async () => {
    expect((await segments([[0, 4_096, 1]], { next: 4_096 })).known).toBe(4_096);
    expect((await segments([[0, 4_096, 1]], {})).known).toBe(1_000_000);
    expect((await segments([[0, 90_000, 1]], { size: 50_000, next: 90_000 })).known).toBe(1_000_000);
  });
});
