import type { ImageRef, PoolConfig, PoolStatus } from '#backends/block-backend';
import type { ExtentSource, RangeBatch } from '#backends/extent-source';
import type { ApplianceIdentity } from '#backends/object-backend';
import { RangeBuilder, sectorOf } from '#backends/range-builder';
import { DataComparison } from '#backends/reflink/compare-data';
import { type DataMap, FileMap } from '#backends/reflink/data-map';
import { fileError } from '#backends/reflink/file-errors';
import { describeImage } from '#backends/reflink/layout';
import { eachPiece, mapPairs } from '#backends/reflink/map-pairs';
import { type OpenedImage, OpenedImages } from '#backends/reflink/opened-images';
import { type PoolAnswers, poolAnswers } from '#backends/reflink/pool-answers';
import { Pools } from '#backends/reflink/pool-root';
import { StorageError } from '#platform/errors';

/** Comparing, a batch goes out with so many ranges; what there is of a pair goes out at its end in any case. */
const COMPARED_RANGES = 4_096;
const METHODS = { reflink: 'extents', copy: 'compare' } as const satisfies Record<PoolStatus['clone'], string>;

/**
 * Ranges of the images that ReflinkBackend makes. Where a pool clones, two snapshots are compared by where their blocks
 * lie; where it copies, by their data. Every window is a call of its own, so the event loop goes round between them.
 */
export class ReflinkExtents implements ExtentSource {
  readonly #pools: Pools;
  readonly #answers: PoolAnswers;

  constructor(pools: readonly PoolConfig[], owner: ApplianceIdentity, answers = poolAnswers) {
    this.#pools = new Pools(pools, owner);
    this.#answers = answers;
  }

  async methodOf(pool: string, signal: AbortSignal): Promise<'extents' | 'compare'> {
    const doing = `look at pool ${pool}`;
    const opened = this.#opened(pool, doing, signal);
    try {
      return await opened.call(async () => {
        const root = await this.#pools.open(pool);
        await root.close();
        return METHODS[root.clone];
      });
    } catch (error) {
      throw signal.aborted ? signal.reason : fileError(error, doing);
    } finally {
      await opened.close();
    }
  }

  allocated(image: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    const doing = `read the map of ${describeImage(image)}`;
    const opened = () => this.#opened(image.pool, doing, signal);
    return stream(doing, signal, opened, images => this.#allocated(image, from, images));
  }

  changed(base: ImageRef, target: ImageRef, from: number, signal: AbortSignal): AsyncIterable<RangeBatch> {
    const doing = `compare ${describeImage(target)} with ${base.id}`;
    const opened = () => this.#opened(target.pool, doing, signal);
    return stream(doing, signal, opened, images => this.#changed(base, target, from, images));
  }

  /** Each call by itself has a place among those of its pool: a stream is open for as long as its reader likes. */
  #opened(pool: string, doing: string, signal: AbortSignal): OpenedImages {
    return new OpenedImages(signal, work =>
      this.#answers.run({ pool: this.#pools.named(pool), lane: 'read', doing }, signal, work),
    );
  }

  async *#allocated(image: ImageRef, from: number, opened: OpenedImages): AsyncGenerator<RangeBatch> {
    const source = await opened.open(this.#pools, image);
    const map = mapOf(source, opened);
    const ranges = new RangeBuilder(from, source.size);
    for (let at = sectorOf(from); at < source.size; ) {
      const window = await map.read(at, source.size);
      for (let n = 0; n < window.count; n++) ranges.add(window.offsets[n]!, window.ends[n]!, 0);
      at = window.end;
      const batch = ranges.take();
      if (batch) yield batch;
    }
  }

  async *#changed(
    baseRef: ImageRef,
    targetRef: ImageRef,
    from: number,
    opened: OpenedImages,
  ): AsyncGenerator<RangeBatch> {
    const [base, target] = [await opened.open(this.#pools, baseRef), await opened.open(this.#pools, targetRef)];
    if (baseRef.pool !== targetRef.pool || base.device !== target.device)
      throw new StorageError(
        'failed_precondition',
        `${describeImage(baseRef)} and ${describeImage(targetRef)} do not lie on one file system`,
      );
    yield* METHODS[target.clone] === 'extents'
      ? byExtents(base, target, from, opened)
      : byData(base, target, from, opened);
  }
}

async function* byExtents(
  base: OpenedImage,
  target: OpenedImage,
  from: number,
  opened: OpenedImages,
): AsyncGenerator<RangeBatch> {
  const ranges = new RangeBuilder(from, target.size);
  const maps = { base: mapOf(base, opened), baseAgain: mapOf(base, opened), target: mapOf(target, opened) };
  for await (const pair of mapPairs(maps, sectorOf(from), target.size)) {
    eachPiece(pair, (offset, end, _, inTarget, isSame) => {
      if (!isSame) ranges.add(offset, end, inTarget ? 0 : 1);
    });
    const batch = ranges.take();
    if (batch) yield batch;
  }
}

async function* byData(
  base: OpenedImage,
  target: OpenedImage,
  from: number,
  opened: OpenedImages,
): AsyncGenerator<RangeBatch> {
  const ranges = new RangeBuilder(from, target.size);
  const comparison = new DataComparison(base, target);
  const maps = { base: mapOf(base, opened), target: mapOf(target, opened) };
  for await (const pair of mapPairs(maps, sectorOf(from), target.size)) {
    for (const portion of comparison.portions(pair)) {
      await opened.call(() =>
        comparison.compare(portion, (offset, end, isZero) => ranges.add(offset, end, isZero ? 1 : 0)),
      );
      if (ranges.count < COMPARED_RANGES) continue;
      const batch = ranges.take();
      if (batch) yield batch;
    }
    const batch = ranges.take();
    if (batch) yield batch;
  }
}

function mapOf({ fd, size }: OpenedImage, opened: OpenedImages): DataMap {
  const map = new FileMap(fd, size);
  return { read: (start, end) => opened.call(() => map.read(start, end)) };
}

/** Nothing is opened before the first batch is asked for. */
async function* stream(
  doing: string,
  signal: AbortSignal,
  open: () => OpenedImages,
  ranges: (opened: OpenedImages) => AsyncGenerator<RangeBatch>,
): AsyncGenerator<RangeBatch> {
  const opened = open();
  try {
    for await (const batch of ranges(opened)) {
      yield batch;
      signal.throwIfAborted();
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : fileError(error, doing);
  } finally {
    await opened.close();
  }
}
