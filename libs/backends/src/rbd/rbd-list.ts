import type { ListedImage } from '#backends/block-backend';
import { type ImageShare, isInShare, isLastShare } from '#backends/image-share';
import type { RbdImages } from '#backends/rbd/rbd-images';
import { parseName, pathIn } from '#backends/rbd/rbd-names';
import { unleased } from '#platform/lease-signal';

/** Images that are looked at at once. */
const AT_ONCE = 8;
/** No operation lives as long. */
const FENCES_KEPT_MS = 7 * 24 * 3_600_000;

/** Every image of ours, or of the share; after the last one what nobody needs any more goes: things in the trash, and fences. */
export async function* listImages(
  images: RbdImages,
  signal: AbortSignal,
  share?: ImageShare,
): AsyncGenerator<ListedImage> {
  const { ceph, cephPool, records } = images;
  const names = (await ceph.call(signal, 'names', cephPool)).filter(name => {
    const parsed = parseName(name);
    return parsed !== undefined && isInShare(parsed.id, share);
  });
  const ids = await records.imageIds(signal, share);
  const look = async (name: string): Promise<ListedImage | undefined> => {
    const { kind, id, folder } = parseName(name)!;
    const found = await ceph.call(signal, 'look', cephPool, { name });
    if (!found || (kind !== 'temporary' && ids.get(id) !== found.id)) return undefined;
    const path = pathIn(cephPool, name, kind);
    return { kind, id, folder, path, sizeBytes: BigInt(found.size), modifiedAt: new Date(found.modifiedAt) };
  };
  for (let at = 0; at < names.length; at += AT_ONCE)
    for (const found of await Promise.all(names.slice(at, at + AT_ONCE).map(look))) if (found) yield found;
  if (!isLastShare(share)) return;
  // Of its own: the given one may be a lease's.
  const whenever = unleased(AbortSignal.any([signal]));
  for (const id of await records.trashed(signal)) await images.reap(id, whenever);
  await records.prune(FENCES_KEPT_MS, whenever);
}
