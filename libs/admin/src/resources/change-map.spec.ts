import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldChanges } from '#admin/resources/change-map';
import { emptyBatch, type RangeBatch } from '#backends/extent-source';

const SECTOR = 512;

interface Range {
  offset: number;
  length: number;
}

async function* inBatches(ranges: readonly Range[], size: number): AsyncGenerator<RangeBatch> {
  for (let at = 0; at < ranges.length; at += size) {
    const batch = emptyBatch(size);
    for (const { offset, length } of ranges.slice(at, at + size)) {
      batch.offsets[batch.count] = offset;
      batch.lengths[batch.count++] = length;
    }
    yield batch;
  }
}

const fold = (capacityBytes: number, ranges: readonly Range[], cells: number, size = 3) =>
  foldChanges({ volumeId: 'v', capacityBytes, batches: inBatches(ranges, size), source: 'index' }, cells);

/** Sector by sector. */
function slowly(capacity: number, ranges: readonly Range[], cellSize: number): number[] {
  const cells = Array.from({ length: Math.ceil(capacity / cellSize) }, (_, cell) => {
    const end = Math.min(capacity, (cell + 1) * cellSize);
    let held = 0;
    for (let at = cell * cellSize; at < end; at += SECTOR)
      if (ranges.some(({ offset, length }) => at >= offset && at < offset + length)) held += SECTOR;
    return held / (end - cell * cellSize);
  });
  return cells;
}

describe('a change map', () => {
  it('says of each cell what a look at every sector says', async () => {
    const sectors = fc.uniqueArray(fc.integer({ min: 0, max: 399 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(
        sectors,
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 400 }),
        async (marks, cells, end) => {
          const capacity = end * SECTOR;
          const ranges: Range[] = [];
          for (const mark of marks.filter(each => each < end).sort((a, b) => a - b)) {
            const last = ranges.at(-1);
            if (last && last.offset + last.length === mark * SECTOR) last.length += SECTOR;
            else ranges.push({ offset: mark * SECTOR, length: SECTOR });
          }
          const map = await fold(capacity, ranges, cells);
          expect(map.cells).toHaveLength(Math.ceil(capacity / map.cellSize));
          expect(map.cells.length).toBeLessThanOrEqual(cells);
          const truth = slowly(capacity, ranges, map.cellSize);
          map.cells.forEach((share, cell) => {
            expect(share).toBeCloseTo(truth[cell]!, 9);
          });
          expect(map.ranges).toBe(ranges.length);
          expect(map.bytes).toBe(ranges.reduce((sum, { length }) => sum + length, 0));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('has whole cells for one range over everything, also of sizes that no cell divides', async () => {
    const capacity = 1_099_511_627_776 + 512;
    const map = await fold(capacity, [{ offset: 0, length: capacity }], 1_024);
    expect(map.bytes).toBe(capacity);
    expect(new Set(map.cells)).toEqual(new Set([1]));
    expect(map.cells.length * map.cellSize).toBeGreaterThanOrEqual(capacity);
    expect((map.cells.length - 1) * map.cellSize).toBeLessThan(capacity);
  });

  it('hands on what goes wrong on the way', async () => {
    async function* broken(): AsyncGenerator<RangeBatch> {
      yield* inBatches([{ offset: 0, length: 512 }], 1);
      throw new Error('lost');
    }
    const changed = { volumeId: 'v', capacityBytes: 4_096, batches: broken(), source: 'walk' } as const;
    await expect(foldChanges(changed, 4)).rejects.toThrow('lost');
  });
});
