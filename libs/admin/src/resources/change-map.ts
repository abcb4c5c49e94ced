import type { ChangedRanges } from '#changes/changed-blocks';

export interface ChangeMap {
  /** Bytes, all of them. */
  capacity: number;
  cellSize: number;
  /** Share of each cell, 0 to 1. */
  cells: number[];
  ranges: number;
  bytes: number;
}

/** Cells begin at a multiple of it: a picture of whole blocks. */
const BLOCK = 4_096;
const YIELD_EVERY = 64;

/**
 * One pass over the ranges, whatever their number: what is kept is one number a cell. All cells are of one size; the last one
 * may reach beyond the end, and its share is of what is there.
 */
export async function foldChanges(
  { capacityBytes: capacity, batches }: ChangedRanges,
  count: number,
): Promise<ChangeMap> {
  const cellSize = Math.max(BLOCK, Math.ceil(capacity / count / BLOCK) * BLOCK);
  const held = new Float64Array(Math.ceil(capacity / cellSize));
  let ranges = 0;
  let bytes = 0;
  let batch = 0;
  for await (const { count: n, offsets, lengths } of batches) {
    for (let at = 0; at < n; at++) {
      const end = offsets[at]! + lengths[at]!;
      bytes += lengths[at]!;
      for (let from = offsets[at]!; from < end; ) {
        const cell = Math.floor(from / cellSize);
        const to = Math.min(end, (cell + 1) * cellSize);
        held[cell]! += to - from;
        from = to;
      }
    }
    ranges += n;
    // What comes from memory only would keep everybody else waiting.
    if (++batch % YIELD_EVERY === 0) await new Promise<void>(resolve => setImmediate(resolve));
  }
  const cells = Array.from(held, (part, cell) => Math.min(1, part / Math.min(cellSize, capacity - cell * cellSize)));
  return { capacity, cellSize, cells, ranges, bytes };
}
