/** A ready delta from one cut to another: a step between neighbours, or a merged one over several. */
export interface Span {
  id: string;
  from: number;
  to: number;
  level: number;
  ranges: number;
  chunks: number;
}

/** What reading a span costs beside its ranges: a query, a chunk in memory. In ranges. */
const SPAN_COST = 1_024;

interface Reached {
  cost: number;
  by?: Span;
}

/** Cheapest ways from `from` to every cut that the spans lead to. Spans lead forwards only. */
function reach(spans: readonly Span[], from: number): Map<number, Reached> {
  const reached = new Map<number, Reached>([[from, { cost: 0 }]]);
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const start = reached.get(span.from);
    if (!start) continue;
    const cost = start.cost + span.ranges + SPAN_COST;
    const known = reached.get(span.to);
    if (!known || cost < known.cost) reached.set(span.to, { cost, by: span });
  }
  return reached;
}

/** The spans that together say what changed between the two cuts, oldest first; undefined: they do not say it. */
export function cheapestPath(spans: readonly Span[], from: number, to: number): Span[] | undefined {
  const reached = reach(spans, from);
  if (!reached.has(to)) return undefined;
  const path: Span[] = [];
  for (let by = reached.get(to)!.by; by; by = reached.get(by.from)!.by) path.push(by);
  return path.reverse();
}

/** The highest cut that the spans lead to. */
export const farthest = (spans: readonly Span[], from: number): number => Math.max(...reach(spans, from).keys());

export interface Merge {
  level: number;
  from: number;
  to: number;
}

/** Above it a merged span saves less than it costs to keep. */
const MAX_LEVEL = 12;

/**
 * The lowest merged span that could be made now and is not there. Level n has a boundary at the first cut of the chain in
 * each block of 2^n cut numbers, and a span from each boundary to the next: so it follows from the cuts alone, any two of
 * them are joined by two spans of a level at most, and a cut that leaves moves a boundary to the next one.
 */
export function missingMerge(cuts: readonly number[], spans: readonly Span[]): Merge | undefined {
  const there = new Set(spans.map(({ from, to }) => `${from}-${to}`));
  for (let level = 1; level <= MAX_LEVEL; level++) {
    const boundaries = firstOfBlocks(cuts, 2 ** level);
    if (boundaries.length < 2) return undefined;
    for (let n = 1; n < boundaries.length; n++) {
      const [from, to] = [boundaries[n - 1]!, boundaries[n]!];
      if (!there.has(`${from}-${to}`) && (cheapestPath(spans, from, to)?.length ?? 0) > 1) return { level, from, to };
    }
  }
  return undefined;
}

function firstOfBlocks(cuts: readonly number[], size: number): number[] {
  const firsts = new Map<number, number>();
  for (const cut of cuts) {
    const block = Math.floor(cut / size);
    if (!firsts.has(block)) firsts.set(block, cut);
  }
  return [...firsts.values()];
}
