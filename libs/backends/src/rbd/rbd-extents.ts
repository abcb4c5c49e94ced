/**
 * Ranges of the images that RbdBackend makes, by librbd's differences between snapshots, as far as they can be relied on in 16.2:
 *
 *  - What an image has of its own comes from its object map, in whole objects: the exact answer leaves out an object that a
 *    discard emptied over data of the parent, and the parent's data are left out where librbd is to add them (ceph#32403). So
 *    each image of the chain is asked by itself.
 *  - Between two snapshots of one image: the object maps say which objects are dirty; what changed inside those is asked for
 *    exactly (of a new object, all up to what was written last), unless a parent shows through, for the same reason, or an
 *    image above holds the object. After a growth the maps say more than is so (ceph#41657), and the exact answer says it right.
 *  - Offsets of questions are those of objects: others are answered at wrong ones (ceph#44483).
 *
 * An image without a valid object map is a precondition. It has a process of its own: each range calls back into its loop.
 */
import type { ImageRef } from '#backends/block-backend';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import type { DiffRange } from '#backends/linux/librbd/diff';
import type { ApplianceIdentity } from '#backends/object-backend';
import { RangeBuilder } from '#backends/range-builder';
import { type CephClient, cephError, codeOf } from '#backends/rbd/ceph-errors';
import { CephProcess } from '#backends/rbd/ceph-process';
import type { RbdConfig } from '#backends/rbd/rbd-config';
import { RbdImages } from '#backends/rbd/rbd-images';
import { type Difference, differenceOf, type Level, lineageOf } from '#backends/rbd/rbd-lineage';
import { describeImage } from '#backends/rbd/rbd-names';
import { RbdPools } from '#backends/rbd/rbd-pools';
import { StorageError } from '#platform/errors';

/** Objects of one look at the maps. */
const WINDOW_OBJECTS = 4_096;
/** Dirty ones that are asked exactly at once: each may have a thousand ranges. */
const EXACT_OBJECTS = 64;

/** Ascending and disjoint, within whole objects. */
type Pieces = Piece[];
interface Piece {
  offset: number;
  end: number;
  hole: 0 | 1;
  /** What of it changed is to be asked. */
  exact?: boolean;
}

export class RbdExtents implements ExtentSource {
  readonly #ceph: CephProcess;
  readonly #pools: RbdPools;
  readonly #client: CephClient;

  constructor(
    { user, monitors, pools }: RbdConfig,
    key: string,
    owner: ApplianceIdentity,
    private readonly windowObjects = WINDOW_OBJECTS,
  ) {
    this.#ceph = new CephProcess({ user, key, monitors }, true);
    this.#pools = new RbdPools(pools, this.#ceph, owner);
    this.#client = { user, pools };
  }

  async methodOf(pool: string, signal: AbortSignal): Promise<'extents'> {
    try {
      await this.#pools.open(pool, signal);
      return 'extents';
    } catch (error) {
      throw this.#error(error, `look at pool ${pool}`, signal);
    }
  }

  allocated(image: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    return this.#stream(`read the map of ${describeImage(image)}`, signal, async function* (this: RbdExtents) {
      const images = await this.#imagesIn(image.pool, signal);
      const { levels, isCut } = await lineageOf(images, image, signal);
      const { size } = levels[0]!;
      // What lies below is not known: anything may hold data.
      if (isCut) yield* whole(from, size);
      else yield* this.#ranges(images, { own: levels }, levels[0]!, from, signal);
    });
  }

  changed(base: ImageRef, target: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    const doing = `compare ${describeImage(target)} with ${base.id}`;
    return this.#stream(doing, signal, async function* (this: RbdExtents) {
      if (base.pool !== target.pool)
        throw new StorageError(
          'failed_precondition',
          `pools ${base.pool} and ${target.pool}: they do not lie in one pool`,
        );
      const images = await this.#imagesIn(target.pool, signal);
      const [before, now] = [await lineageOf(images, base, signal), await lineageOf(images, target, signal)];
      yield* this.#ranges(images, differenceOf(before, now), now.levels[0]!, from, signal);
    });
  }

  close(): void {
    this.#ceph.close();
  }

  async *#ranges(
    images: RbdImages,
    { own, between }: Difference,
    { size, objectBytes }: Level,
    from: number,
    signal: AbortSignal,
  ): AsyncGenerator<RangeBatch> {
    const ranges = new RangeBuilder(from, size);
    const window = this.windowObjects * objectBytes;
    const isExact = between && !between.since.parent && !between.level.parent;
    for (let at = Math.floor(from / objectBytes) * objectBytes; at < size; at += window) {
      const end = Math.min(size, at + window);
      const ask = (level: Level, parts: readonly Partial<DiffRange>[], since?: Level): Promise<Pieces> =>
        this.#diff(
          images,
          level,
          since,
          parts.map(part => ({ offset: at, length: end - at, whole: true, ...part })),
          signal,
        );
      const held = (await Promise.all(own.map(level => ask(level, [{}])))).flat();
      const dirty = between ? await ask(between.level, [{}], between.since) : [];
      const parts = between && isExact ? split(dirty, held, between.level.objectBytes) : merged([...held, ...dirty]);
      for (let n = 0; n < parts.length; n += EXACT_OBJECTS) {
        const some = parts.slice(n, n + EXACT_OBJECTS);
        const told = some.filter(({ exact }) => !exact);
        if (between && told.length < some.length) {
          const asked = some.filter(({ exact }) => exact);
          const within = asked.map(({ offset, end: last }) => ({ offset, length: last - offset, whole: false }));
          const found = await ask(between.level, within, between.since);
          told.push(...found.map(piece => ({ ...piece, hole: between.reversed ? (0 as const) : piece.hole })));
          told.sort((a, b) => a.offset - b.offset);
        }
        for (const { offset, end: last, hole } of told) ranges.add(offset, last, hole);
        const batch = ranges.take();
        if (batch) yield batch;
      }
      const batch = ranges.take();
      if (batch) yield batch;
    }
  }

  /** Of what a level has of its own, or changed since. Beyond its end there is nothing. */
  async #diff(
    images: RbdImages,
    { id, snapshot, size }: Level,
    since: Level | undefined,
    parts: readonly Pick<DiffRange, 'offset' | 'length' | 'whole'>[],
    signal: AbortSignal,
  ): Promise<Pieces> {
    const within = parts.flatMap(({ offset, length, whole: inObjects }): DiffRange[] =>
      offset < size
        ? [
            {
              offset,
              length: Math.min(length, size - offset),
              whole: inObjects,
              parent: false,
              ...(since ? { since: since.snapshot } : {}),
            },
          ]
        : [],
    );
    if (within.length === 0) return [];
    const found = await this.#ceph.call(signal, 'diff', images.cephPool, { id, snapshot }, within);
    const pieces: Pieces = [];
    for (let n = 0; n < found.length; n += 3)
      pieces.push({ offset: found[n]!, end: found[n]! + found[n + 1]!, hole: found[n + 2] === 1 ? 1 : 0 });
    return pieces.sort((a, b) => a.offset - b.offset);
  }

  async #imagesIn(pool: string, signal: AbortSignal): Promise<RbdImages> {
    const { cephPool, dataPool } = await this.#pools.open(pool, signal);
    return new RbdImages(this.#ceph, cephPool, dataPool);
  }

  /** Nothing is asked before the first batch is. */
  async *#stream(
    doing: string,
    signal: AbortSignal,
    ranges: (this: RbdExtents) => AsyncGenerator<RangeBatch>,
  ): AsyncGenerator<RangeBatch> {
    try {
      signal.throwIfAborted();
      for await (const batch of ranges.call(this)) {
        yield batch;
        signal.throwIfAborted();
      }
    } catch (error) {
      throw this.#error(error, doing, signal);
    }
  }

  #error(error: unknown, doing: string, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (codeOf(error) === 'ENOENT')
      return new StorageError('not_found', `${doing}: it is missing by now`, { cause: error });
    return cephError(error, doing, this.#client);
  }
}

function* whole(from: number, size: number): Generator<RangeBatch> {
  const ranges = new RangeBuilder(from, size);
  ranges.add(0, size, 0);
  const batch = ranges.take();
  if (batch) yield batch;
}

/**
 * Objects that are dirty and that no image above holds are asked exactly, each by itself: so what is told of one does not
 * depend on the window that it lies in.
 */
function split(dirty: Pieces, held: Pieces, objectBytes: number): Pieces {
  const objectsOf = ({ offset, end }: Piece): number[] => {
    const first = Math.floor(offset / objectBytes);
    return Array.from({ length: Math.ceil(end / objectBytes) - first }, (_, n) => first + n);
  };
  const covered = new Set(held.flatMap(objectsOf));
  const pieces = [...held];
  const asked: Pieces = [];
  for (const piece of dirty)
    for (const object of objectsOf(piece)) {
      const offset = Math.max(piece.offset, object * objectBytes);
      const end = Math.min(piece.end, (object + 1) * objectBytes);
      if (covered.has(object)) pieces.push({ offset, end, hole: 0 });
      else asked.push({ offset, end, hole: 0, exact: true });
    }
  return [...merged(pieces), ...asked].sort((a, b) => a.offset - b.offset);
}

/** Of pieces of several images: each range once, as data. */
function merged(pieces: Pieces): Pieces {
  const found: Pieces = [];
  for (const { offset, end } of pieces.sort((a, b) => a.offset - b.offset)) {
    const last = found.at(-1);
    if (last && last.end >= offset) last.end = Math.max(last.end, end);
    else found.push({ offset, end, hole: 0 });
  }
  return found;
}
