import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cheapestPath, farthest, missingMerge, type Span } from '#changes/span-path';

const span = (from: number, to: number, ranges = 10): Span => ({
  id: `${from}-${to}`,
  from,
  to,
  level: 0,
  ranges,
  chunks: 1,
});
const ids = (path: Span[] | undefined) => path?.map(({ id }) => id);

describe('a path', () => {
  it('joins spans without a gap, in order, whatever order they come in', () => {
    const spans = [span(3, 5), span(1, 2), span(2, 3), span(5, 6)];
    expect(ids(cheapestPath(spans, 1, 6))).toEqual(['1-2', '2-3', '3-5', '5-6']);
    expect(ids(cheapestPath(spans, 2, 5))).toEqual(['2-3', '3-5']);
    expect(ids(cheapestPath(spans, 2, 2))).toEqual([]);
    expect(cheapestPath(spans, 1, 4)).toBeUndefined();
    expect(cheapestPath(spans, 4, 6)).toBeUndefined();
    expect(farthest(spans, 1)).toBe(6);
    expect(farthest([span(1, 2), span(3, 4)], 1)).toBe(2);
    expect(farthest([], 7)).toBe(7);
  });

  it('prefers a merged span, unless that holds far more', () => {
    const steps = [span(1, 2), span(2, 3), span(3, 4)];
    expect(ids(cheapestPath([...steps, span(1, 3, 20)], 1, 4))).toEqual(['1-3', '3-4']);
    expect(ids(cheapestPath([...steps, span(1, 3, 1e6)], 1, 4))).toEqual(['1-2', '2-3', '3-4']);
  });
});

describe('merged spans', () => {
  const merged = (cuts: readonly number[]): Span[] => {
    const spans = cuts.slice(1).map((cut, n) => span(cuts[n]!, cut));
    for (let next = missingMerge(cuts, spans); next; next = missingMerge(cuts, spans)) {
      const { from, to, level } = next;
      expect(spans.some(one => one.from === from && one.to === to)).toBe(false);
      const ranges = cheapestPath(spans, from, to)!.reduce((sum, one) => sum + one.ranges, 0);
      spans.push({ ...span(from, to, ranges), level });
    }
    return spans;
  };

  it('are as many as the steps again, and a long way has few', () => {
    const cuts = Array.from({ length: 1_000 }, (_, n) => n + 1);
    const spans = merged(cuts);
    expect(spans.length).toBeLessThan(2_010);
    expect(cheapestPath(spans, 1, 1_000)!.length).toBeLessThanOrEqual(20);
    expect(cheapestPath(spans, 3, 998)!.length).toBeLessThanOrEqual(20);
  });

  it('join any two cuts of any chain in few steps', () => {
    const chain = fc.uniqueArray(fc.integer({ min: 1, max: 500 }), { minLength: 2, maxLength: 60 });
    fc.assert(
      fc.property(chain, fc.nat(), fc.nat(), (picked, a, b) => {
        const cuts = picked.sort((x, y) => x - y);
        const [from, to] = [a % cuts.length, b % cuts.length].sort((x, y) => x - y) as [number, number];
        const path = cheapestPath(merged(cuts), cuts[from]!, cuts[to]!)!;
        expect(path.length).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(500)) + 1);
        path.reduce((at, one) => {
          expect(one.from).toBe(at);
          return one.to;
        }, cuts[from]!);
      }),
      { numRuns: 50 },
    );
  });
});
