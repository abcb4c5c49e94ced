/** What the child of a cluster does when it is told to: each method one call, which changes one thing or nothing. */
import { connectRados, type KeyCondition, type RadosCluster, type RadosPool } from '#backends/linux/librados';
import { discardFrom, fillWithZeros, readImage, writeImage } from '#backends/linux/librbd/content';
import { type DiffRange, diffImage } from '#backends/linux/librbd/diff';
import { type ImageFacts, lookAtImage, watchersOf } from '#backends/linux/librbd/look';
import { cloneImage, createImage, flattenImage, growTo } from '#backends/linux/librbd/make-image';
import { idOfName, listedId, listImageNames, removeName, renameImage, unlist } from '#backends/linux/librbd/names';
import { type ImageAt } from '#backends/linux/librbd/open-image';
import { removeSnapshot, takeSnapshot, takeSnapshots } from '#backends/linux/librbd/snapshots';
import { listTrash, moveToTrash, removeFromTrash } from '#backends/linux/librbd/trash';
import { countObjects } from '#backends/rbd/object-map';

let cluster: RadosCluster | undefined;
const pools = new Map<string, Promise<RadosPool>>();

function connected(): RadosCluster {
  if (!cluster) throw new Error('not connected');
  return cluster;
}

function pool(name: string): Promise<RadosPool> {
  const known = pools.get(name);
  if (known) return known;
  const opening = connected().openPool(name);
  pools.set(name, opening);
  // Made later, or allowed later.
  opening.catch(() => pools.delete(name));
  return opening;
}

export const CEPH_METHODS = {
  async connect(user: string, options: Readonly<Record<string, string>>): Promise<string> {
    cluster = await connectRados(user, options);
    return cluster.fsid();
  },
  identity: async (): Promise<{ fsid: string; clients: string }> => ({
    fsid: connected().fsid(),
    clients: await connected().addresses(),
  }),
  barrier: (): Promise<void> => connected().barrier(),
  command: (command: Readonly<Record<string, unknown>>): Promise<unknown> => connected().command(command),

  changeKeys: async (
    at: string,
    object: string,
    conditions: readonly KeyCondition[],
    set: Readonly<Record<string, string>>,
    remove: readonly string[],
  ): Promise<boolean> => (await pool(at)).changeKeys(object, conditions, set, remove),
  keys: async (at: string, object: string, prefix: string, after: string, limit: number) =>
    (await pool(at)).keys(object, prefix, after, limit),

  create: async (at: string, name: string, size: number, dataPool?: string) =>
    createImage(await pool(at), name, size, dataPool),
  clone: async (at: string, source: { name: string; snapshot: string }, name: string, dataPool?: string) =>
    cloneImage(await pool(at), source, name, dataPool),
  look: async (at: string, image: ImageAt) => lookAtImage(await pool(at), image),
  snapshot: async (at: string, image: ImageAt, name: string) => takeSnapshot(await pool(at), image, name),
  snapshots: async (at: string, cuts: readonly { name: string; snapshot: string }[]) =>
    takeSnapshots(await pool(at), cuts),
  removeSnapshot: async (at: string, image: ImageAt, snapshot: string | number) =>
    removeSnapshot(await pool(at), image, snapshot),
  grow: async (at: string, name: string, size: number) => growTo(await pool(at), name, size),
  flatten: async (at: string, name: string) => flattenImage(await pool(at), name),
  fill: async (at: string, name: string, offset: number, length: number) =>
    fillWithZeros(await pool(at), name, offset, length),
  rename: async (at: string, from: string, to: string) => renameImage(await pool(at), from, to),
  removeName: async (at: string, name: string) => removeName(await pool(at), name),
  idOf: async (at: string, name: string) => idOfName(await pool(at), name),
  listedId: async (at: string, name: string) => listedId(await pool(at), name),
  unlist: async (at: string, name: string, id: string) => unlist(await pool(at), name, id),
  trash: async (at: string, name: string) => moveToTrash(await pool(at), name),
  reap: async (at: string, id: string) => removeFromTrash(await pool(at), id),
  trashed: async (at: string) => listTrash(await pool(at)),
  names: async (at: string) => listImageNames(await pool(at)),
  watchers: async (at: string, image: ImageAt) => watchersOf(await pool(at), image),

  /** How many data objects it has of its own; a shared parent's are the parent's. */
  async objects(at: string, { id, size, objectBytes, isMapped }: ImageFacts): Promise<number> {
    const map = isMapped ? await (await pool(at)).read(`rbd_object_map.${id}`, OBJECT_MAP_BYTES) : undefined;
    return (map && countObjects(map)) ?? Math.ceil(size / objectBytes);
  },

  /** Three numbers for each range: where it begins, how long it is, and 1 where there are zeros now. */
  diff: async (at: string, image: ImageAt, ranges: readonly DiffRange[]) => {
    const found: number[] = [];
    await diffImage(await pool(at), image, ranges, (offset, length, isHole) => {
      found.push(offset, length, isHole ? 1 : 0);
      return true;
    });
    return Float64Array.from(found);
  },

  /** For measurements and tests. */
  read: async (at: string, image: ImageAt, offset: number, length: number) =>
    readImage(await pool(at), image, offset, length),
  write: async (at: string, image: ImageAt, offset: number, data: Uint8Array) =>
    writeImage(await pool(at), image, offset, Buffer.from(data)),
  discard: async (at: string, image: ImageAt, offset: number, length: number) =>
    discardFrom(await pool(at), image, offset, length),
};

export type CephMethods = typeof CEPH_METHODS;

/** 2 bits for each object: of 4 MiB, in 64 MiB of map, of a PiB and more. */
const OBJECT_MAP_BYTES = 64 * 1024 * 1024;
