/** Images by our names, in one pool. An image that has such a name and that we did not make is never taken for ours. */
import type { ImageRef } from '#backends/block-backend';
import type { ImageFacts } from '#backends/linux/librbd/look';
import { codeOf } from '#backends/rbd/ceph-errors';
import type { CephProcess } from '#backends/rbd/ceph-process';
import { describeImage, imageName, isCut, isCutOf, SEALED } from '#backends/rbd/rbd-names';
import { RbdRecords } from '#backends/rbd/rbd-records';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

/** No chain of parents is as long, unless somebody else made it. */
const MAX_CHAIN = 64;

export interface OwnImage extends ImageFacts {
  name: string;
  sealed: boolean;
}

export class RbdImages {
  readonly records: RbdRecords;

  constructor(
    readonly ceph: CephProcess,
    readonly cephPool: string,
    readonly dataPool: string | undefined,
  ) {
    this.records = new RbdRecords(ceph, cephPool);
  }

  /** Undefined when there is none; one of somebody else's is `failed_precondition`. */
  async find(image: ImageRef, signal: AbortSignal): Promise<OwnImage | undefined> {
    const name = imageName(image);
    const [facts, records] = await Promise.all([
      this.ceph.call(signal, 'look', this.cephPool, { name }),
      this.records.of(image.id, signal),
    ]);
    if (!facts) return undefined;
    if (records.get('image') !== facts.id) throw foreign(image, name);
    return { ...facts, name, sealed: isSealed(facts) };
  }

  /** Its id, which costs a tenth of what `find` does. */
  async idOf(image: ImageRef, signal: AbortSignal): Promise<string | undefined> {
    const name = imageName(image);
    const [id, records] = await Promise.all([
      this.ceph.call(signal, 'idOf', this.cephPool, name),
      this.records.of(image.id, signal),
    ]);
    if (id !== undefined && records.get('image') !== id) throw foreign(image, name);
    return id;
  }

  /** A missing image is `failed_precondition`: nothing here makes it anew (invariant F2). */
  async require(image: ImageRef, signal: AbortSignal): Promise<OwnImage> {
    const found = await this.find(image, signal);
    if (found) return found;
    throw new StorageError('failed_precondition', `${describeImage(image)} is missing`);
  }

  /** How many parents it has, one behind the other. */
  async depthOf(image: ImageFacts, signal: AbortSignal): Promise<number> {
    let depth = 0;
    for (let { parent } = image; parent && depth < MAX_CHAIN; depth++)
      parent = (await this.ceph.call(signal, 'look', this.cephPool, { id: parent.imageId }))?.parent;
    return depth;
  }

  /**
   * By the trash: what still has clones stays there, unseen, until the last of them is gone or needs it no longer. All its
   * room is free when this resolves, or when that comes.
   */
  async remove(
    found: ImageFacts & { name: string },
    imageId: string,
    what: string,
    signal: LeaseSignal,
  ): Promise<void> {
    // The trash would take it, and its writers would go on there.
    const watchers = await this.ceph.call(signal, 'watchers', this.cephPool, { id: found.id });
    if (watchers.length > 0) throw busy(what, watchers);
    await failpoint('rbd.removing');
    if (isSealed(found)) await this.dropSnapshot({ id: found.id }, SEALED, signal);
    await failpoint('rbd.unsealed');
    const { parent } = found;
    // Before the clone: without it nothing would lead there any more.
    if (parent && isCutOf(parent.snapshot, imageId))
      await this.dropSnapshot({ id: parent.imageId }, parent.snapshot, signal);
    await failpoint('rbd.uncut');
    await this.records.noteTrash(found.id, signal);
    await failpoint('rbd.trashing');
    mayChange(signal);
    try {
      await this.ceph.call(signal, 'trash', this.cephPool, found.name);
    } catch (error) {
      if (codeOf(error) === 'EBUSY') throw busy(what, []);
      if (codeOf(error) !== 'ENOENT') throw error;
      // Gone already, or moved by an earlier call: then its name leads nowhere. A full pool without a trash says it, too.
      if ((await this.ceph.call(signal, 'look', this.cephPool, { name: found.name }))?.id === found.id)
        throw new StorageError('unavailable', `${what}: the cluster does not move it to its trash`, { cause: error });
    }
    await failpoint('rbd.trashed');
    await this.reap(found.id, signal);
  }

  /**
   * The rest of a removal that ended half-way: what had the name is in the trash, or gone, and is still noted. False where
   * there is nothing of the kind, or what is noted has yet to get its name.
   */
  async endRemoval(imageId: string, signal: LeaseSignal): Promise<boolean> {
    const id = (await this.records.of(imageId, signal)).get('image');
    if (id === undefined) return false;
    if ((await this.records.trashed(signal)).includes(id)) await this.reap(id, signal);
    else if (await this.ceph.call(signal, 'look', this.cephPool, { id })) return false;
    return true;
  }

  /** Frees what is in the trash and no longer needed, and then what was kept for it alone. */
  async reap(id: string, signal: LeaseSignal): Promise<void> {
    for (let next: string | undefined = id; next !== undefined; ) {
      const noted: string = next;
      const found = await this.#lookInTrash(noted, signal);
      const facts = found === 'shut' ? undefined : found;
      next = undefined;
      // By a call that nobody waited for any more: with it the image would stay here for good.
      if (facts && isSealed(facts)) await this.dropSnapshot({ id: noted }, SEALED, signal);
      mayChange(signal);
      try {
        // Also of what has no header any more: an earlier call that was cut off left its entry in the trash.
        await this.ceph.call(signal, 'reap', this.cephPool, noted);
      } catch (error) {
        const code = codeOf(error);
        // It has clones, or somebody looks at it right now: the audit tries again.
        if (code === 'ENOTEMPTY' || code === 'EBUSY') return;
        if (code !== 'ENOENT') throw error;
        // Not there yet: it is just being moved, and is looked for again.
        if (await this.#lookInTrash(noted, signal)) return;
      }
      if (facts?.parent?.inTrash) next = facts.parent.imageId;
      await failpoint('rbd.reaped');
      await this.records.forgetTrash(noted, signal);
      if (next !== undefined && !(await this.records.trashed(signal)).includes(next)) return;
    }
  }

  /**
   * `shut`: it cannot be opened, mostly for want of its parent, whose snapshot a removal that was cut off has taken away. librbd
   * removes it all the same, without the parent.
   */
  #lookInTrash(id: string, signal: AbortSignal): Promise<ImageFacts | 'shut' | undefined> {
    return this.ceph.call(signal, 'look', this.cephPool, { id }).catch(error => {
      if (codeOf(error) !== 'ESHUT') throw error;
      return 'shut';
    });
  }

  /** By its name or number. One that is gone is fine, and so is its image. */
  async dropSnapshot(
    at: { id: string } | { name: string },
    snapshot: string | number,
    signal: LeaseSignal,
  ): Promise<void> {
    mayChange(signal);
    try {
      await this.ceph.call(signal, 'removeSnapshot', this.cephPool, at, snapshot);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
}

function busy(what: string, watchers: readonly string[]): StorageError {
  const by = watchers.length > 0 ? ` at ${watchers.join(', ')}` : '';
  return new StorageError('failed_precondition', `${what} is still open${by}`, { retry: 'later' });
}

export const isSealed = ({ snapshots }: ImageFacts): boolean => snapshots.some(({ name }) => name === SEALED);
export const cutsOf = ({ snapshots }: ImageFacts): number => snapshots.filter(({ name }) => isCut(name)).length;

export const foreign = (image: ImageRef, name: string): StorageError =>
  new StorageError('failed_precondition', `${describeImage(image)}: image ${name} is not Trivet's, and is left alone`, {
    retry: 'person',
  });
