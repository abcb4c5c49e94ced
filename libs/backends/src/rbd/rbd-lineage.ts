import type { ImageRef } from '#backends/block-backend';
import type { ImageFacts, ParentOf } from '#backends/linux/librbd/look';
import type { RbdImages } from '#backends/rbd/rbd-images';
import { describeImage, SEALED } from '#backends/rbd/rbd-names';
import { StorageError } from '#platform/errors';

/** No chain of parents is as long, unless somebody else made it. */
const MAX_CHAIN = 64;

/** What an image shows is its own objects over those of its parent, at a snapshot of it, and so on. */
export interface Level extends ImageFacts {
  snapshot: string;
}

export interface Lineage {
  what: string;
  /** The image itself first. */
  levels: Level[];
  /** The last level has a parent that cannot be opened any more: its snapshot is in the trash, or its object map is broken. */
  isCut: boolean;
}

/** Of a snapshot of ours. */
export async function lineageOf(images: RbdImages, image: ImageRef, signal: AbortSignal): Promise<Lineage> {
  const what = describeImage(image);
  const found = await images.find(image, signal);
  if (!found) throw new StorageError('not_found', `${what} is missing`);
  if (!found.sealed) throw new StorageError('failed_precondition', `${what} may be written to`);
  const levels: Level[] = [];
  let next: { id: string; snapshot: string } | undefined = { id: found.id, snapshot: SEALED };
  while (next && levels.length < MAX_CHAIN) {
    const facts: ImageFacts | undefined = await images.ceph.call(signal, 'look', images.cephPool, next);
    if (!facts?.isMapped) break;
    levels.push({ ...facts, snapshot: next.snapshot });
    const parent: ParentOf | undefined = facts.parent;
    next = parent && { id: parent.imageId, snapshot: parent.snapshot };
  }
  if (levels.length === 0) throw new StorageError('failed_precondition', `${what}: its object map is not valid`);
  return { what, levels, isCut: next !== undefined };
}

export interface Difference {
  /** Whatever these hold may differ. */
  own: Level[];
  /** One image at two of its snapshots, the older one first. */
  between?: { since: Level; level: Level; reversed: boolean };
}

/** Where two snapshots may differ: what is not of the first image that both come from, and what changed in that one. */
export function differenceOf(base: Lineage, target: Lineage): Difference {
  const at = target.levels.findIndex(level => base.levels.some(({ id }) => id === level.id));
  if (at < 0) {
    const cut = [base, target].find(({ isCut }) => isCut);
    if (cut)
      throw new StorageError(
        'failed_precondition',
        `${base.what} and ${target.what} have no image in common, and what ${cut.what} came from is gone`,
      );
    return { own: [...target.levels, ...base.levels] };
  }
  const level = target.levels[at]!;
  const other = base.levels.findIndex(({ id }) => id === level.id);
  const since = base.levels[other]!;
  const own = [...target.levels.slice(0, at), ...base.levels.slice(0, other)];
  if (since.snapshot === level.snapshot) return { own };
  const known = [...since.snapshots, ...level.snapshots];
  const [before, now] = [since, level].map(({ snapshot }) => known.find(({ name }) => name === snapshot)?.id);
  if (before === undefined || now === undefined)
    throw new StorageError('failed_precondition', `${base.what} or ${target.what} is just being removed`);
  const reversed = before > now;
  return { own, between: reversed ? { since: level, level: since, reversed } : { since, level, reversed } };
}
