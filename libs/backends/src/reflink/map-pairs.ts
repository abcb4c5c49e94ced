/**
 * Two files' maps side by side. Equal addresses mean equal data only while both files hold the block: a relocation
 * (defragmentation, deduplication) between the two reads could give a block of the base to the target. So the base's
 * window is read again after the target's, and the window begins anew when it is another one (invariant C7).
 */
import type { DataMap, MapWindow } from '#backends/reflink/data-map';
import { StorageError } from '#platform/errors';

const TRIES = 5;

export interface MapPair {
  start: number;
  end: number;
  /** May begin before `start`, and reach beyond `end`. */
  base: MapWindow;
  /** Neither. */
  target: MapWindow;
}

export interface MapsOfPair {
  base: DataMap;
  target: DataMap;
  /** The base once more, into other memory. Absent: addresses are not compared, so nothing is verified. */
  baseAgain?: DataMap;
}

/** From `start` to `end` without gaps; each pair is good until the next one. */
export async function* mapPairs(maps: MapsOfPair, start: number, end: number): AsyncGenerator<MapPair> {
  let base: MapWindow | undefined;
  for (let at = start; at < end; ) {
    let tries = 0;
    for (;;) {
      // One window of the base lasts for several of the target where that one is cut finer.
      if (!base || base.end <= at) base = await maps.base.read(at, end);
      const target = await maps.target.read(at, base.end);
      const again = await maps.baseAgain?.read(at, target.end);
      const stop = again?.end ?? target.end;
      if (!again || isSame(base, again, at, stop)) {
        yield { start: at, end: stop, base, target };
        at = stop;
        break;
      }
      base = undefined;
      if (++tries === TRIES)
        throw new StorageError(
          'unavailable',
          'the blocks of the base were moved again and again while they were compared: stop defragmentation and deduplication on this pool',
        );
    }
  }
}

/** Whether both say the same of what lies between `start` and `end`. */
function isSame(a: MapWindow, b: MapWindow, start: number, end: number): boolean {
  let i = firstAfter(a, start);
  let j = firstAfter(b, start);
  for (;;) {
    const hasA = i < a.count && a.offsets[i]! < end;
    const hasB = j < b.count && b.offsets[j]! < end;
    if (!hasA || !hasB) return hasA === hasB;
    if (Math.max(a.offsets[i]!, start) !== Math.max(b.offsets[j]!, start)) return false;
    if (Math.min(a.ends[i]!, end) !== Math.min(b.ends[j]!, end)) return false;
    if (!Object.is(a.shifts[i], b.shifts[j])) return false;
    i++;
    j++;
  }
}

/** The first segment that ends after `start`. */
function firstAfter({ count, ends }: MapWindow, start: number): number {
  let low = 0;
  for (let high = count; low < high; ) {
    const middle = (low + high) >> 1;
    if (ends[middle]! <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `isSame`: both hold it in the same blocks. */
export type Visit = (offset: number, end: number, inBase: boolean, inTarget: boolean, isSame: boolean) => void;

/** The pieces of a pair at which at least one of them holds data, in order. */
export function eachPiece({ start, end, base, target }: MapPair, visit: Visit): void {
  let i = firstAfter(base, start);
  let j = firstAfter(target, start);
  for (let at = start; at < end; ) {
    const baseFrom = i < base.count ? base.offsets[i]! : end;
    const targetFrom = j < target.count ? target.offsets[j]! : end;
    const inBase = baseFrom <= at;
    const inTarget = targetFrom <= at;
    const baseStop = inBase ? base.ends[i]! : baseFrom;
    const targetStop = inTarget ? target.ends[j]! : targetFrom;
    const stop = Math.min(baseStop, targetStop, end);
    if (inBase || inTarget)
      visit(at, stop, inBase, inTarget, inBase && inTarget && base.shifts[i] === target.shifts[j]);
    if (inBase && baseStop === stop) i++;
    if (inTarget && targetStop === stop) j++;
    at = stop;
  }
}
