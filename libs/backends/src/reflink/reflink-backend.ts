import { constants } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  BlockBackend,
  CutPrediction,
  ImageInspection,
  ImageRef,
  ListedImage,
  PoolConfig,
  PoolStatus,
  StageContent,
  StageRef,
} from '#backends/block-backend';
import { HostFences } from '#backends/host-fence';
import type { ApplianceIdentity } from '#backends/object-backend';
import { cutTogether } from '#backends/reflink/cut';
import { CutSpeed, countExtents } from '#backends/reflink/cut-speed';
import { fileError, timedOut } from '#backends/reflink/file-errors';
import { growFile } from '#backends/reflink/grow';
import { describeImage, FENCES, imagePath } from '#backends/reflink/layout';
import { listPool } from '#backends/reflink/list-pool';
import { longWork } from '#backends/reflink/long-work';
import { type PoolAnswers, poolAnswers } from '#backends/reflink/pool-answers';
import { type PoolRoot, Pools } from '#backends/reflink/pool-root';
import { commitStage, openImage, removeStages, statOf, unlinkImage, writeStage } from '#backends/reflink/staging';
import { isStorageError, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

/** No operation lives as long. */
const FENCES_KEPT_MS = 7 * 24 * 3_600_000;

/**
 * Volumes and snapshots as files in folders. On XFS and btrfs they share blocks; elsewhere the data are copied, and the
 * pool says so. The layout of a pool: layout.ts; how an image comes to its name: staging.ts.
 */
export class ReflinkBackend implements BlockBackend {
  readonly #pools: Pools;
  readonly #speeds = new Map<string, CutSpeed>();
  readonly #answers: PoolAnswers;

  constructor(pools: readonly PoolConfig[], owner: ApplianceIdentity, answers = poolAnswers) {
    this.#pools = new Pools(pools, owner);
    this.#answers = answers;
  }

  async health(signal: AbortSignal): Promise<void> {
    const found = await this.inspectPools(signal);
    if (found.some(pool => pool.state === 'up')) return;
    const reasons = found.map(pool => pool.reason).join('; ');
    throw new StorageError('unavailable', reasons || 'no pool is registered: set TRIVET_POOLS');
  }

  inspectPools(signal: AbortSignal): Promise<PoolStatus[]> {
    return Promise.all(this.#pools.configured.map(pool => this.#status(pool.name, signal)));
  }

  async preparePool(pool: string, signal: LeaseSignal): Promise<PoolStatus> {
    this.#answers.require(this.#pools.named(pool));
    mayChange(signal);
    await whileWanted(`prepare pool ${pool}`, signal, () => this.#pools.prepare(pool));
    return this.#in(pool, `inspect pool ${pool}`, signal, root => statusOf(pool, root));
  }

  inspectImage(image: ImageRef, signal: AbortSignal): Promise<ImageInspection> {
    return this.#onImage(image, 'inspect', signal, async root => {
      const found = await statOf(imagePath(root.path, image));
      if (!found) return { state: 'absent' };
      if (!found.isFile()) throw new StorageError('failed_precondition', `${describeImage(image)} is not a plain file`);
      const { size: sizeBytes, blocks, mode } = found;
      return { state: 'present', sizeBytes, allocatedBytes: blocks * 512n, readOnly: (mode & 0o222n) === 0n };
    });
  }

  predictCut(image: ImageRef, limit: number, signal: AbortSignal): Promise<CutPrediction> {
    return this.#onImage(image, 'count the extents of', signal, async root => {
      const file = await openImage(root, image, constants.O_RDONLY);
      try {
        if (root.clone === 'reflink') return this.#speed(image.pool).clone(await countExtents(file.fd, limit, signal));
        const { blocks } = await file.stat({ bigint: true });
        return this.#speed(image.pool).copy(await countExtents(file.fd, limit, signal), blocks * 512n);
      } finally {
        await file.close();
      }
    });
  }

  stage(stage: StageRef, content: StageContent, signal: LeaseSignal): Promise<void> {
    return this.#long(stage.pool, `stage image ${stage.imageId}`, signal, async root => {
      await enter(root, stage.imageId, stage.fence, signal);
      await writeStage(root, stage, content, this.#speed(stage.pool), signal);
      await keepUnlessOvertaken(root, stage, signal);
    });
  }

  stageTogether(
    cuts: readonly { stage: StageRef; source: ImageRef }[],
    pause: { pids: readonly number[]; deadlineMs: number },
    signal: LeaseSignal,
  ): Promise<{ pausedMs: number }> {
    const doing = `cut ${cuts.length} images together`;
    const work = async (): Promise<{ pausedMs: number }> => {
      const roots = new Map<string, PoolRoot>();
      try {
        for (const { stage, source } of cuts)
          for (const pool of [stage.pool, source.pool]) if (!roots.has(pool)) roots.set(pool, await this.#open(pool));
        for (const { stage } of cuts) await enter(roots.get(stage.pool)!, stage.imageId, stage.fence, signal);
        const done = await cutTogether(cuts, roots, pause, signal);
        for (const { stage } of cuts) await keepUnlessOvertaken(roots.get(stage.pool)!, stage, signal);
        return done;
      } finally {
        for (const root of roots.values()) await root.close();
      }
    };
    return whileWanted(doing, signal, () => longWork.run(work, signal, () => timedOut(doing)));
  }

  commit(stage: StageRef, image: ImageRef, options: { readOnly: boolean }, signal: LeaseSignal): Promise<void> {
    return this.#onImage(image, 'commit', signal, async root => {
      const mayChangeNow = () => enter(root, stage.imageId, stage.fence, signal);
      await mayChangeNow();
      await commitStage(root, stage, image, options, mayChangeNow);
    });
  }

  discardStages(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#onImage(image, 'discard what was staged for', signal, async root => {
      await enter(root, image.id, fence, signal);
      await removeStages(root, image.id, fence);
    });
  }

  growImage(
    image: ImageRef,
    size: { sizeBytes: bigint; thick: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<void> {
    return this.#long(image.pool, `grow ${describeImage(image)}`, signal, async root => {
      const mayChangeNow = () => enter(root, image.id, fence, signal);
      await mayChangeNow();
      await growFile(root, image, size, mayChangeNow, signal);
    });
  }

  removeImage(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#long(image.pool, `remove ${describeImage(image)}`, signal, async root => {
      const mayChangeNow = () => enter(root, image.id, fence, signal);
      await mayChangeNow();
      // Once more when it comes to it: an image of this name may be a successor's by then.
      await unlinkImage(root, image, mayChangeNow);
    });
  }

  async *listImages(pool: string, signal: AbortSignal): AsyncIterable<ListedImage> {
    const doing = `list pool ${pool}`;
    if (signal.aborted) throw timedOut(doing);
    const opening = this.#open(pool);
    const root = await this.#answers.within(doing, opening).catch(error => {
      opening.then(
        late => late.close(),
        () => {},
      );
      throw error;
    });
    try {
      for await (const image of this.#inTime(doing, listPool(root))) {
        if (signal.aborted) throw timedOut(doing);
        yield image;
      }
      await fences(root).prune(FENCES_KEPT_MS);
    } catch (error) {
      throw fileError(error, doing);
    } finally {
      await this.#answers.within(doing, root.close());
    }
  }

  pathOf(image: ImageRef): string {
    return imagePath(this.#pools.named(image.pool).path, image);
  }

  close(): void {
    // Descriptors belong to calls, and end with them.
  }

  #speed(pool: string): CutSpeed {
    const known = this.#speeds.get(pool) ?? new CutSpeed();
    this.#speeds.set(pool, known);
    return known;
  }

  async #status(pool: string, signal: AbortSignal): Promise<PoolStatus> {
    try {
      const look = () => this.#withRoot(pool, root => statusOf(pool, root));
      return await whileWanted(`inspect pool ${pool}`, signal, () => this.#answers.look(this.#pools.named(pool), look));
    } catch (error) {
      if (!isStorageError(error) || error.kind === 'timeout') throw error;
      return { name: pool, state: 'down', reason: error.message, totalBytes: 0n, usedBytes: 0n, clone: 'copy' };
    }
  }

  #onImage<T>(image: ImageRef, verb: string, signal: AbortSignal, work: (root: PoolRoot) => Promise<T>): Promise<T> {
    return this.#in(image.pool, `${verb} ${describeImage(image)}`, signal, work);
  }

  #long<T>(pool: string, doing: string, signal: AbortSignal, work: (root: PoolRoot) => Promise<T>): Promise<T> {
    const run = () =>
      longWork.run(
        () => this.#withRoot(pool, work),
        signal,
        () => timedOut(doing),
      );
    return whileWanted(doing, signal, run);
  }

  #in<T>(pool: string, doing: string, signal: AbortSignal, work: (root: PoolRoot) => Promise<T>): Promise<T> {
    return whileWanted(doing, signal, () => this.#withRoot(pool, work));
  }

  async #open(pool: string): Promise<PoolRoot> {
    this.#answers.require(this.#pools.named(pool));
    return this.#pools.open(pool);
  }

  /** Each step of a listing by itself: it may be as long as it likes. */
  async *#inTime<T>(doing: string, all: AsyncIterable<T>): AsyncGenerator<T> {
    const steps = all[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step = await this.#answers.within(doing, steps.next());
        if (step.done) return;
        yield step.value;
      }
    } finally {
      await this.#answers.within(doing, Promise.resolve(steps.return?.()));
    }
  }

  async #withRoot<T>(pool: string, work: (root: PoolRoot) => Promise<T>): Promise<T> {
    const root = await this.#open(pool);
    try {
      return await work(root);
    } finally {
      await root.close();
    }
  }
}

const fences = (root: PoolRoot): HostFences => new HostFences(join(root.path, FENCES));

/** Whoever was overtaken learns it from the successor's fence, if it has one by now, or else from its own clock. */
async function enter(root: PoolRoot, imageId: string, fence: string, signal: LeaseSignal): Promise<void> {
  await fences(root).enter(imageId, fence);
  mayChange(signal);
}

/**
 * Who was overtaken while it wrote takes its temporary away: the successor has looked for such already, and does not
 * look again.
 */
async function keepUnlessOvertaken(root: PoolRoot, stage: StageRef, signal: LeaseSignal): Promise<void> {
  try {
    await enter(root, stage.imageId, stage.fence, signal);
  } catch (error) {
    await removeStages(root, stage.imageId, stage.fence);
    throw error;
  }
}

async function statusOf(name: string, root: PoolRoot): Promise<PoolStatus> {
  // A pool that cannot be listed is not up.
  await (await opendir(root.path)).close();
  return { name, state: 'up', uuid: root.uuid, ...(await root.usage()), clone: root.clone };
}

/**
 * Rejects with `timeout` as soon as the signal fires. A system call that hangs or takes minutes cannot be called back:
 * the work behind it goes on, stops at its next look at the signal, and takes away what it had made.
 */
function whileWanted<T>(doing: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (signal.aborted) return Promise.reject(timedOut(doing));
  return new Promise((resolve, reject) => {
    const leave = () => reject(timedOut(doing));
    signal.addEventListener('abort', leave, { once: true });
    work()
      .then(resolve, error => reject(signal.aborted ? timedOut(doing) : fileError(error, doing)))
      .finally(() => signal.removeEventListener('abort', leave));
  });
}
