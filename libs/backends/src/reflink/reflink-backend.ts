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
  PoolSurvey,
  StageContent,
  StageRef,
} from '#backends/block-backend';
import { HostFences } from '#backends/host-fence';
import { type ImageShare, isLastShare } from '#backends/image-share';
import type { ApplianceIdentity } from '#backends/object-backend';
import { cutTogether } from '#backends/reflink/cut';
import { CutSpeed, countExtents } from '#backends/reflink/cut-speed';
import { fileError, timedOut } from '#backends/reflink/file-errors';
import type { LaneName } from '#backends/reflink/file-system-calls';
import { growFile } from '#backends/reflink/grow';
import { describeImage, FENCES, imagePath } from '#backends/reflink/layout';
import { listPool } from '#backends/reflink/list-pool';
import { type PoolAnswers, type PoolCall, poolAnswers } from '#backends/reflink/pool-answers';
import { PoolAbsent, type PoolRoot, Pools, writeCanary } from '#backends/reflink/pool-root';
import { commitStage, openImage, removeStages, statOf, unlinkImage, writeStage } from '#backends/reflink/staging';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange, narrowed } from '#platform/lease-signal';

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
    const doing = `prepare pool ${pool}`;
    await this.#answers.run({ pool: this.#pools.named(pool), lane: 'short', doing }, signal, () => {
      mayChange(signal);
      return this.#pools.prepare(pool);
    });
    return this.#in({ pool, lane: 'short', doing: `inspect pool ${pool}` }, signal, root => statusOf(pool, root));
  }

  surveyPool(name: string, signal: AbortSignal): Promise<PoolSurvey> {
    const pool = this.#pools.named(name);
    return this.#answers.run({ pool, lane: 'short', doing: `look at pool ${name}` }, signal, () =>
      this.#pools.survey(name),
    );
  }

  inspectImage(image: ImageRef, signal: AbortSignal): Promise<ImageInspection> {
    return this.#onImage(image, 'short', 'inspect', signal, async root => {
      const found = await statOf(imagePath(root.path, image));
      if (!found) return { state: 'absent' };
      if (!found.isFile()) throw new StorageError('failed_precondition', `${describeImage(image)} is not a plain file`);
      const { size: sizeBytes, blocks, mode } = found;
      return { state: 'present', sizeBytes, allocatedBytes: blocks * 512n, readOnly: (mode & 0o222n) === 0n };
    });
  }

  predictCut(image: ImageRef, limit: number, signal: AbortSignal): Promise<CutPrediction> {
    return this.#onImage(image, 'short', 'count the extents of', signal, async root => {
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
    const { pool, imageId } = stage;
    const call = { pool, lane: 'make', doing: `stage image ${imageId}`, images: [imageId] } as const;
    return this.#change(call, signal, async (root, may) => {
      await enter(root, imageId, stage.fence, may);
      await writeStage(root, stage, content, this.#speed(pool), may);
      await keepUnlessOvertaken(root, stage, may);
    });
  }

  async stageTogether(
    cuts: readonly { stage: StageRef; source: ImageRef }[],
    pause: { pids: readonly number[]; deadlineMs: number },
    signal: LeaseSignal,
  ): Promise<{ pausedMs: number }> {
    const doing = `cut ${cuts.length} images together`;
    const work = async (may: LeaseSignal): Promise<{ pausedMs: number }> => {
      const roots = new Map<string, PoolRoot>();
      try {
        for (const { stage, source } of cuts)
          for (const pool of [stage.pool, source.pool])
            if (!roots.has(pool)) roots.set(pool, await this.#pools.open(pool));
        for (const { stage } of cuts) await enter(roots.get(stage.pool)!, stage.imageId, stage.fence, may);
        const done = await cutTogether(cuts, roots, pause, may);
        for (const { stage } of cuts) await keepUnlessOvertaken(roots.get(stage.pool)!, stage, may);
        return done;
      } finally {
        for (const root of roots.values()) await root.close();
      }
    };
    const names = new Set(cuts.flatMap(({ stage, source }) => [stage.pool, source.pool]));
    const pools = [...names].map(name => this.#pools.named(name));
    const images = cuts.map(({ stage }) => stage.imageId);
    return this.#answers.runTogether(pools, { lane: 'make', doing, images }, signal, left =>
      work(narrowed(signal, left)),
    );
  }

  commit(stage: StageRef, image: ImageRef, options: { readOnly: boolean }, signal: LeaseSignal): Promise<void> {
    return this.#changeImage(image, 'short', 'commit', signal, async (root, may) => {
      const mayChangeNow = () => enter(root, stage.imageId, stage.fence, may);
      await mayChangeNow();
      await commitStage(root, stage, image, options, mayChangeNow);
    });
  }

  discardStages(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#changeImage(image, 'short', 'discard what was staged for', signal, async (root, may) => {
      await enter(root, image.id, fence, may);
      await removeStages(root, image.id, fence);
    });
  }

  growImage(
    image: ImageRef,
    size: { sizeBytes: bigint; thick: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<void> {
    return this.#changeImage(image, 'make', 'grow', signal, async (root, may) => {
      const mayChangeNow = () => enter(root, image.id, fence, may);
      await mayChangeNow();
      await growFile(root, image, size, mayChangeNow, may);
    });
  }

  removeImage(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#changeImage(image, 'remove', 'remove', signal, async (root, may) => {
      const mayChangeNow = () => enter(root, image.id, fence, may);
      await mayChangeNow();
      // Once more when it comes to it: an image of this name may be a successor's by then.
      await unlinkImage(root, image, mayChangeNow);
    });
  }

  async *listImages(pool: string, signal: AbortSignal, share?: ImageShare): AsyncIterable<ListedImage> {
    const doing = `list pool ${pool}`;
    // Each step by itself: the whole may be as long as it likes.
    const step = <T>(work: () => Promise<T>): Promise<T> =>
      this.#answers.within(
        doing,
        this.#answers.run({ pool: this.#pools.named(pool), lane: 'short', doing }, signal, work),
      );
    let hasLeft = false;
    const root = await step(async () => {
      const opened = await this.#pools.open(pool);
      if (hasLeft) await opened.close();
      return opened;
    }).catch(error => {
      hasLeft = true;
      throw error;
    });
    const images = listPool(root, share)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await step(() => images.next());
        if (next.done) break;
        yield next.value;
      }
      if (isLastShare(share)) await step(() => fences(root).prune(FENCES_KEPT_MS));
    } catch (error) {
      throw fileError(error, doing);
    } finally {
      // A step that hangs holds the folder, and its own end closes it.
      const end = (async () => {
        await images.return(undefined);
        await root.close();
      })();
      await this.#answers.within(doing, end);
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

  async #status(name: string, signal: AbortSignal): Promise<PoolStatus> {
    const pool = this.#pools.named(name);
    const doing = `inspect pool ${name}`;
    if (signal.aborted) throw timedOut(doing, name);
    try {
      return await untilAborted(
        this.#answers.look(
          pool,
          () => this.#withRoot(name, root => statusOf(name, root)),
          () => this.#withRoot(name, writeCanary),
        ),
        signal,
        () => timedOut(doing, name),
      );
    } catch (cause) {
      const error = fileError(cause, doing);
      if (error.kind === 'timeout') throw error;
      const absent = error instanceof PoolAbsent ? ({ isAbsent: true } as const) : {};
      return { name, state: 'down', reason: error.message, ...absent, totalBytes: 0n, usedBytes: 0n, clone: 'copy' };
    }
  }

  #onImage<T>(
    { pool, ...image }: ImageRef,
    lane: LaneName,
    verb: string,
    signal: AbortSignal,
    work: (root: PoolRoot) => Promise<T>,
  ): Promise<T> {
    const doing = `${verb} ${describeImage({ ...image, pool })}`;
    return this.#in({ pool, lane, doing, images: [image.id] }, signal, work);
  }

  #changeImage<T>(
    { pool, ...image }: ImageRef,
    lane: LaneName,
    verb: string,
    signal: LeaseSignal,
    work: (root: PoolRoot, may: LeaseSignal) => Promise<T>,
  ): Promise<T> {
    const doing = `${verb} ${describeImage({ ...image, pool })}`;
    return this.#change({ pool, lane, doing, images: [image.id] }, signal, work);
  }

  /** `work` may change nothing any more when nobody waits for it. */
  #change<T>(call: NamedCall, signal: LeaseSignal, work: (root: PoolRoot, may: LeaseSignal) => Promise<T>): Promise<T> {
    return this.#in(call, signal, (root, left) => work(root, narrowed(signal, left)));
  }

  async #in<T>(
    { pool, ...call }: NamedCall,
    signal: AbortSignal,
    work: (root: PoolRoot, left: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#answers.run({ ...call, pool: this.#pools.named(pool) }, signal, left =>
      this.#withRoot(pool, root => work(root, left)),
    );
  }

  async #withRoot<T>(pool: string, work: (root: PoolRoot) => Promise<T>): Promise<T> {
    const root = await this.#pools.open(pool);
    try {
      return await work(root);
    } finally {
      await root.close();
    }
  }
}

type NamedCall = Omit<PoolCall, 'pool'> & { pool: string };

function untilAborted<T>(work: Promise<T>, signal: AbortSignal, why: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(why());
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
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
