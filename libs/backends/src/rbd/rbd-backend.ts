import type {
  BlockBackend,
  CutPrediction,
  ImageInspection,
  ImageRef,
  ListedImage,
  PoolStatus,
  PoolSurvey,
  StageContent,
  StageRef,
} from '#backends/block-backend';
import type { ImageShare } from '#backends/image-share';
import { Lane } from '#backends/lane';
import type { ApplianceIdentity } from '#backends/object-backend';
import { type CephClient, cephError, timedOut } from '#backends/rbd/ceph-errors';
import { CephProcess } from '#backends/rbd/ceph-process';
import { RbdCluster } from '#backends/rbd/rbd-cluster';
import type { RbdConfig } from '#backends/rbd/rbd-config';
import { cutTogether } from '#backends/rbd/rbd-cut';
import { growImage } from '#backends/rbd/rbd-grow';
import { RbdImages } from '#backends/rbd/rbd-images';
import { listImages } from '#backends/rbd/rbd-list';
import { describeImage, imageName, pathIn } from '#backends/rbd/rbd-names';
import { RbdPools } from '#backends/rbd/rbd-pools';
import { commitStage, removeStages, removeStrays, writeStage } from '#backends/rbd/rbd-staging';
import { splitPortal } from '#backends/tgt/portals';
import { isStorageError, StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** Before any was measured. */
const CUT_MS = 50;
/** Clones, copies, deletions: minutes each. */
const LONG_AT_ONCE = 4;

/**
 * Volumes and snapshots as images of a Ceph cluster. What they are called: rbd-names.ts; what is noted beside them:
 * rbd-records.ts; how an image comes to its name: rbd-staging.ts.
 */
export class RbdBackend implements BlockBackend {
  readonly cluster: RbdCluster;
  readonly #ceph: CephProcess;
  readonly #pools: RbdPools;
  readonly #client: CephClient;
  /** Of the child's threads the others are for what is short. */
  readonly #long = new Lane(LONG_AT_ONCE);
  #cutMs = CUT_MS;

  constructor(config: RbdConfig, key: string, owner: ApplianceIdentity) {
    const { user, monitors, pools } = config;
    this.#ceph = new CephProcess({ user, key, monitors });
    this.#pools = new RbdPools(pools, this.#ceph, owner);
    this.#client = { user, pools };
    const portalsOf = (some: RbdConfig['pools']) => some.flatMap(({ portals }) => portals.map(splitPortal));
    const moving = portalsOf(pools.filter(pool => pool.moving)).map(({ address }) => address);
    const ports = portalsOf(pools).map(({ port }) => port);
    this.cluster = new RbdCluster(this.#ceph, this.#client, new Set(moving), ports);
  }

  async health(signal: AbortSignal): Promise<void> {
    const found = await this.inspectPools(signal);
    if (found.some(pool => pool.state === 'up')) return;
    throw new StorageError('unavailable', found.map(pool => pool.reason).join('; ') || 'no pool is registered');
  }

  inspectPools(signal: AbortSignal): Promise<PoolStatus[]> {
    return Promise.all(this.#pools.configured.map(pool => this.#status(pool.name, signal)));
  }

  preparePool(pool: string, signal: LeaseSignal): Promise<PoolStatus> {
    return this.#doing(`prepare pool ${pool}`, signal, async () => {
      await this.#pools.prepare(pool, signal);
      return this.#pools.status(pool, signal);
    });
  }

  async surveyPool(pool: string, signal: AbortSignal): Promise<PoolSurvey> {
    try {
      return await this.#doing(`look at pool ${pool}`, signal, () => this.#pools.survey(pool, signal));
    } catch (error) {
      if (!isStorageError(error) || error.kind === 'timeout') throw error;
      return { ok: false, detail: error.message };
    }
  }

  inspectImage(image: ImageRef, signal: AbortSignal): Promise<ImageInspection> {
    return this.#onImage(image, 'inspect', signal, async images => {
      const found = await images.find(image, signal);
      if (!found) return { state: 'absent' };
      const objects = await this.#ceph.call(signal, 'objects', images.cephPool, found);
      const allocatedBytes = BigInt(Math.min(found.size, objects * found.objectBytes));
      return { state: 'present', sizeBytes: BigInt(found.size), allocatedBytes, readOnly: found.sealed };
    });
  }

  /** A cut costs the same whatever is in the image: two changes of its header. What is counted are its objects. */
  predictCut(image: ImageRef, limit: number, signal: AbortSignal): Promise<CutPrediction> {
    return this.#onImage(image, 'count the objects of', signal, async images => {
      const found = await images.require(image, signal);
      const objects = await this.#ceph.call(signal, 'objects', images.cephPool, found);
      return { extents: Math.min(objects, limit), more: objects > limit, stallMs: objects === 0 ? 0 : this.#cutMs };
    });
  }

  stage(stage: StageRef, content: StageContent, signal: LeaseSignal): Promise<void> {
    return this.#longIn(stage.pool, `stage image ${stage.imageId}`, signal, async images => {
      requireSamePool(stage, content.kind === 'copy' ? content.source : undefined);
      // Beside the rest, which reads nothing of it; asked for in its turn.
      const source = content.kind === 'copy' ? images.require(content.source, signal) : undefined;
      source?.catch(() => {});
      await images.records.enter(stage.imageId, stage.fence, signal);
      await this.#pools.requireRoom(this.#pools.named(stage.pool), signal);
      await removeStages(images, stage.imageId, stage.fence, false, signal);
      await writeStage(images, stage, content, source, signal);
    });
  }

  stageTogether(
    cuts: readonly { stage: StageRef; source: ImageRef }[],
    pause: { pids: readonly number[]; deadlineMs: number },
    signal: LeaseSignal,
  ): Promise<{ pausedMs: number }> {
    const [first] = cuts;
    if (!first) return Promise.resolve({ pausedMs: 0 });
    return this.#longIn(first.stage.pool, `cut ${cuts.length} images together`, signal, async images => {
      for (const { stage, source } of cuts) {
        requireSamePool(first.stage, stage);
        requireSamePool(stage, source);
        await images.records.enter(stage.imageId, stage.fence, signal);
        await removeStages(images, stage.imageId, stage.fence, false, signal);
      }
      await this.#pools.requireRoom(this.#pools.named(first.stage.pool), signal);
      const done = await cutTogether(images, cuts, pause, signal);
      this.#cutMs = (this.#cutMs + done.cutMs) / 2;
      return { pausedMs: done.pausedMs };
    });
  }

  commit(stage: StageRef, image: ImageRef, options: { readOnly: boolean }, signal: LeaseSignal): Promise<void> {
    return this.#onImage(image, 'commit', signal, images => commitStage(images, stage, image, options, signal));
  }

  discardStages(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#onImage(image, 'discard what was staged for', signal, async images => {
      await images.records.enter(image.id, fence, signal);
      await removeStages(images, image.id, fence, false, signal);
      await removeStrays(images, image.id, fence, signal);
    });
  }

  growImage(
    image: ImageRef,
    size: { sizeBytes: bigint; thick: boolean },
    fence: string,
    signal: LeaseSignal,
  ): Promise<void> {
    return this.#longIn(image.pool, `grow ${describeImage(image)}`, signal, async images => {
      await images.records.enter(image.id, fence, signal);
      await growImage(images, image, size, fence, signal, () =>
        this.#pools.requireRoom(this.#pools.named(image.pool), signal),
      );
    });
  }

  removeImage(image: ImageRef, fence: string, signal: LeaseSignal): Promise<void> {
    return this.#longIn(image.pool, `remove ${describeImage(image)}`, signal, async images => {
      await images.records.enter(image.id, fence, signal);
      const found = await images.find(image, signal);
      if (found) {
        // Once more when it comes to it: an image of this name may be a successor's by then.
        await images.records.enter(image.id, fence, signal);
        await images.remove(found, image.id, describeImage(image), signal);
        await failpoint('rbd.removed');
      } else if (!(await images.endRemoval(image.id, signal))) return;
      await images.records.enter(image.id, fence, signal, {}, ['image', 'thick']);
    });
  }

  async *listImages(pool: string, signal: AbortSignal, share?: ImageShare): AsyncIterable<ListedImage> {
    const doing = `list pool ${pool}`;
    try {
      signal.throwIfAborted();
      const images = await this.#imagesIn(pool, signal);
      yield* listImages(images, signal, share);
    } catch (error) {
      throw this.#error(error, doing, signal);
    }
  }

  /** As tgtd and QEMU are told it. */
  pathOf(image: ImageRef): string {
    return pathIn(this.#pools.named(image.pool).cephPool, imageName(image), image.kind as 'volume' | 'snapshot');
  }

  close(): void {
    this.#ceph.close();
  }

  async #status(pool: string, signal: AbortSignal): Promise<PoolStatus> {
    try {
      return await this.#doing(`inspect pool ${pool}`, signal, () => this.#pools.status(pool, signal));
    } catch (error) {
      if (!isStorageError(error) || error.kind === 'timeout') throw error;
      const reason = error.message.includes(pool) ? error.message : `pool ${pool}: ${error.message}`;
      return { name: pool, state: 'down', reason, totalBytes: 0n, usedBytes: 0n, clone: 'reflink' };
    }
  }

  async #imagesIn(pool: string, signal: AbortSignal): Promise<RbdImages> {
    const { cephPool, dataPool } = await this.#pools.open(pool, signal);
    return new RbdImages(this.#ceph, cephPool, dataPool);
  }

  #onImage<T>(image: ImageRef, verb: string, signal: AbortSignal, work: (images: RbdImages) => Promise<T>): Promise<T> {
    return this.#doing(`${verb} ${describeImage(image)}`, signal, async () =>
      work(await this.#imagesIn(image.pool, signal)),
    );
  }

  #longIn<T>(pool: string, doing: string, signal: AbortSignal, work: (images: RbdImages) => Promise<T>): Promise<T> {
    const run = async () => work(await this.#imagesIn(pool, signal));
    return this.#doing(doing, signal, () => this.#long.run(run, signal, () => timedOut(doing)));
  }

  async #doing<T>(doing: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      signal.throwIfAborted();
      return await work();
    } catch (error) {
      throw this.#error(error, doing, signal);
    }
  }

  #error(error: unknown, doing: string, signal: AbortSignal): StorageError {
    return signal.aborted && !isStorageError(error) ? timedOut(doing, error) : cephError(error, doing, this.#client);
  }
}

function requireSamePool(stage: { pool: string }, other: { pool: string } | undefined): void {
  if (other && other.pool !== stage.pool)
    throw new StorageError('failed_precondition', `pools ${stage.pool} and ${other.pool}: a clone stays in its pool`);
}
