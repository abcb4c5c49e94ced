import { describe, expect, it } from 'vitest';
import type { DataMap } from '#backends/reflink/data-map';
import { eachPiece, mapPairs } from '#backends/reflink/map-pairs';

type Segment = [offset: number, end: number, shift: number];

const MANY = 1_000;

/** A map of at most so many segments a window. `whenRead` may change it before each read. */
class TestMap implements DataMap {
  reads = 0;

  constructor(
    public segments: Segment[],
    private readonly atOnce = MANY,
    private readonly whenRead: (map: TestMap) => void = () => {},
  ) {}

  async read(start: number, end: number) {
    this.reads++;
    this.whenRead(this);
    const inside = this.segments.filter(segment => segment[1] > start && segment[0] < end);
    const given = inside
      .slice(0, this.atOnce)
      .map(([from, to, shift]): Segment => [Math.max(from, start), Math.min(to, end), shift]);
    return {
      end: given.length < inside.length ? given.at(-1)![1] : end,
      count: given.length,
      offsets: Float64Array.from(given, ([from]) => from),
      ends: Float64Array.from(given, ([, to]) => to),
      shifts: Float64Array.from(given, ([, , shift]) => shift),
    };
  }
}

async function pieces(base: DataMap, target: DataMap, { size = 100, from = 0, again = base as DataMap | null } = {}) {
  const found: string[] = [];
  let at = from;
  const maps = { base, target, baseAgain: again ?? undefined };
  for await (const pair of mapPairs(maps, from, size)) {
    expect(pair.start).toBe(at);
    at = pair.end;
    eachPiece(pair, (offset, end, inBase, inTarget, isSame) => {
      if (!isSame) found.push(`${offset}-${end} ${inBase ? 'data' : 'hole'} to ${inTarget ? 'data' : 'hole'}`);
    });
  }
  expect(at).toBe(Math.max(size, from));
  return found;
}

describe('two maps', () => {
  it('differ where the blocks do, and not where both hold nothing', async () => {
    const base = new TestMap([
      [0, 10, 5],
      [20, 30, 5],
      [40, 50, 5],
      [60, 70, 5],
    ]);
    const target = new TestMap([
      [0, 10, 5],
      [20, 30, 6],
      [45, 55, 5],
      [80, 90, 5],
    ]);
    expect(await pieces(base, target)).toEqual([
      '20-30 data to data',
      '40-45 data to hole',
      '50-55 hole to data',
      '60-70 data to hole',
      '80-90 hole to data',
    ]);
  });

  it('are the same however they are cut', async () => {
    const base = new TestMap([[0, 50, 5]]);
    const target = new TestMap([
      [0, 7, 5],
      [7, 20, 5],
      [20, 21, 6],
      [21, 50, 5],
    ]);
    expect(await pieces(base, target)).toEqual(['20-21 data to data']);
    expect(await pieces(target, base)).toEqual(['20-21 data to data']);
  });

  it('differ where an address tells nothing, even when both say so', async () => {
    const unknown = (): TestMap => new TestMap([[10, 20, Number.NaN]]);
    expect(await pieces(unknown(), unknown())).toEqual(['10-20 data to data']);
    expect(await pieces(unknown(), new TestMap([]))).toEqual(['10-20 data to hole']);
  });

  it.each([
    [1, 1],
    [1, 3],
    [2, 7],
    [5, 1],
    [MANY, 2],
    [3, MANY],
  ])('are walked in windows of %i and %i segments as in one', async (inBase, inTarget) => {
    const segmentsOf = (seed: number): Segment[] => {
      const found: Segment[] = [];
      let state = seed;
      const next = (below: number): number => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return 1 + (Math.floor(state / 65_536) % below);
      };
      for (let at = next(5); at < 980; ) {
        const end = at + next(12);
        found.push([at, Math.min(end, 1_000), next(2)]);
        at = end + (next(3) === 1 ? 0 : next(9));
      }
      return found;
    };
    const join = (found: string[]) => {
      const units = new Set<string>();
      for (const piece of found) {
        const [range, ...kind] = piece.split(' ');
        const [from, to] = range!.split('-').map(Number);
        for (let at = from!; at < to!; at++) units.add(`${at} ${kind.join(' ')}`);
      }
      return [...units];
    };
    for (let seed = 1; seed <= 20; seed++) {
      const [one, two] = [segmentsOf(seed), segmentsOf(seed + 100)];
      for (const from of [0, 1, 333, 999, 1_000]) {
        const whole = await pieces(new TestMap(one), new TestMap(two), { size: 1_000, from });
        const again = new TestMap(one, Math.max(1, inBase - 1));
        const cut = { size: 1_000, from, again };
        expect(join(await pieces(new TestMap(one, inBase), new TestMap(two, inTarget), cut))).toEqual(join(whole));
      }
    }
  });

  it('are read window by window, as they are asked for', async () => {
    const segments = Array.from({ length: 50 }, (_, n): Segment => [n * 2, n * 2 + 1, n]);
    const [base, target, again] = [1, 2, 3].map(() => new TestMap(segments, 5)) as [TestMap, TestMap, TestMap];
    const pairs = mapPairs({ base, target, baseAgain: again }, 0, 100);
    await pairs.next();
    expect([base.reads, target.reads, again.reads]).toEqual([1, 1, 1]);
    await pairs.next();
    expect([base.reads, target.reads, again.reads]).toEqual([2, 2, 2]);
    await pairs.return(undefined);
  });
});

describe('blocks that move while they are compared', () => {
  /** A relocation gives the base's old block to the target: it looks as if nothing had changed. */
  const moving = (times: number) => {
    const base = new TestMap([[0, 10, 5]]);
    const again = new TestMap([[0, 10, 5]], MANY, map => {
      if (map.reads <= times) {
        map.segments = [[0, 10, 100 + map.reads]];
        base.segments = times === Number.POSITIVE_INFINITY ? [[0, 10, 5]] : map.segments;
      }
    });
    const target = new TestMap([[0, 10, 5]]);
    return { base, again, target };
  };

  it('are seen, and the window is read anew', async () => {
    const { base, again, target } = moving(1);
    expect(await pieces(base, target, { again })).toEqual(['0-10 data to data']);
    expect([base.reads, target.reads, again.reads]).toEqual([2, 2, 2]);
  });

  it('without the second look would be taken for unchanged', async () => {
    const { base, target } = moving(1);
    expect(await pieces(base, target, { again: null })).toEqual([]);
  });

  it('again and again end it: not now', async () => {
    const { base, again, target } = moving(Number.POSITIVE_INFINITY);
    await expect(pieces(base, target, { again })).rejects.toMatchObject({
      name: 'StorageError',
      kind: 'unavailable',
      message: expect.stringContaining('defragmentation'),
    });
    expect(again.reads).toBe(5);
  });
});
