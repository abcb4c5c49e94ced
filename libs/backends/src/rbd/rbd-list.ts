import type { ListedImage } from '#backends/block-backend';
import { type ImageShare, isInShare, isLastShare } from '#backends/image-share';
import { codeOf } from '#backends/rbd/ceph-errors';
import type { RbdImages } from '#backends/rbd/rbd-images';
import { parseName, pathIn } from '#backends/rbd/rbd-names';
import { type LeaseSignal, mayChange, unleased } from '#platform/lease-signal';
import { applianceTime } from '#platform/process/appliance-time';

/** Images that are looked at at once. */
const AT_ONCE = 8;
/** No operation lives as long. */
const FENCES_KEPT_MS = 7 * 24 * 3_600_000;
/** A name that leads nowhere for so long, and of which nothing was done since, is not of an image that is just being made or moved. */
const LEFT_MS = 3_600_000;

/** A name of a creation or a deletion that was cut off. Only where this appliance has begun something, and never an image. */
async function dropName({ ceph, cephPool, records }: RbdImages, name: string, signal: LeaseSignal): Promise<void> {
  const entered = await records.enteredAt(parseName(name)!.id, signal);
  if (entered === undefined || entered > applianceTime() - LEFT_MS) return;
  const id = await ceph.call(signal, 'listedId', cephPool, name);
  if (id === undefined || (await ceph.call(signal, 'look', cephPool, { name }))) return;
  const isInTrash = (await ceph.call(signal, 'trashed', cephPool)).some(one => one.id === id);
  if (!isInTrash && (await ceph.call(signal, 'look', cephPool, { id }))) return;
  mayChange(signal);
  await ceph.call(signal, 'removeName', cephPool, name);
  mayChange(signal);
  await ceph.call(signal, 'unlist', cephPool, name, id);
}

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
  const nowhere: string[] = [];
  const look = async (name: string): Promise<ListedImage | undefined> => {
    const { kind, id, folder } = parseName(name)!;
    const found = await ceph.call(signal, 'look', cephPool, { name }).catch(async error => {
      if (codeOf(error) !== 'ESHUT') throw error;
      // Listed all the same; who inspects it is told.
      const shut = await ceph.call(signal, 'idOf', cephPool, name);
      return shut === undefined ? undefined : { id: shut, size: 0, modifiedAt: 0 };
    });
    if (!found) nowhere.push(name);
    if (!found || (kind !== 'temporary' && ids.get(id) !== found.id)) return undefined;
    const path = pathIn(cephPool, name, kind);
    return { kind, id, folder, path, sizeBytes: BigInt(found.size), modifiedAt: new Date(found.modifiedAt) };
  };
  for (let at = 0; at < names.length; at += AT_ONCE)
    for (const found of await Promise.all(names.slice(at, at + AT_ONCE).map(look))) if (found) yield found;
  // Of its own: the given one may be a lease's.
  const whenever = unleased(AbortSignal.any([signal]));
  for (const name of nowhere) await dropName(images, name, whenever);
  if (!isLastShare(share)) return;
  const unreaped: unknown[] = [];
  for (const id of await records.trashed(signal))
    await images.reap(id, whenever).catch(error => {
      unreaped.push(error);
    });
  await records.prune(FENCES_KEPT_MS, whenever);
  if (unreaped.length > 0) throw unreaped[0];
}
