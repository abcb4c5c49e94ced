/** What the child of a cluster does when it is told to: each method one call, which changes one thing or nothing. */
import { connectRados, type KeyCondition, type RadosCluster, type RadosPool } from '#backends/linux/librados';
import * as librbd from '#backends/linux/librbd';
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
    librbd.createImage(await pool(at), name, size, dataPool),
  clone: async (at: string, source: { name: string; snapshot: string }, name: string, dataPool?: string) =>
    librbd.cloneImage(await pool(at), source, name, dataPool),
  look: async (at: string, image: librbd.ImageAt) => librbd.lookAtImage(await pool(at), image),
  snapshot: async (at: string, image: librbd.ImageAt, name: string) => librbd.takeSnapshot(await pool(at), image, name),
  snapshots: async (at: string, cuts: readonly { name: string; snapshot: string }[]) =>
    librbd.takeSnapshots(await pool(at), cuts),
  removeSnapshot: async (at: string, image: librbd.ImageAt, name: string) =>
    librbd.removeSnapshot(await pool(at), image, name),
  grow: async (at: string, name: string, size: number) => librbd.growTo(await pool(at), name, size),
  flatten: async (at: string, name: string) => librbd.flattenImage(await pool(at), name),
  fill: async (at: string, name: string, offset: number, length: number) =>
    librbd.fillWithZeros(await pool(at), name, offset, length),
  rename: async (at: string, from: string, to: string) => librbd.renameImage(await pool(at), from, to),
  removeName: async (at: string, name: string) => librbd.removeName(await pool(at), name),
  idOf: async (at: string, name: string) => librbd.idOfName(await pool(at), name),
  listedId: async (at: string, name: string) => librbd.listedId(await pool(at), name),
  unlist: async (at: string, name: string, id: string) => librbd.unlist(await pool(at), name, id),
  trash: async (at: string, name: string) => librbd.moveToTrash(await pool(at), name),
  reap: async (at: string, id: string) => librbd.removeFromTrash(await pool(at), id),
  trashed: async (at: string) => librbd.listTrash(await pool(at)),
  names: async (at: string) => librbd.listImageNames(await pool(at)),
  watchers: async (at: string, image: librbd.ImageAt) => librbd.watchersOf(await pool(at), image),

  /** How many data objects it has of its own; a shared parent's are the parent's. */
  async objects(at: string, { id, size, objectBytes, isMapped }: librbd.ImageFacts): Promise<number> {
    const map = isMapped ? await (await pool(at)).read(`rbd_object_map.${id}`, OBJECT_MAP_BYTES) : undefined;
    return (map && countObjects(map)) ?? Math.ceil(size / objectBytes);
  },

  /** Three numbers for each range: where it begins, how long it is, and 1 where there are zeros now. */
  diff: async (at: string, image: librbd.ImageAt, ranges: readonly librbd.DiffRange[]) => {
    const found: number[] = [];
    await librbd.diffImage(await pool(at), image, ranges, (offset, length, isHole) => {
      found.push(offset, length, isHole ? 1 : 0);
      return true;
    });
    return Float64Array.from(found);
  },

  /** For measurements and tests. */
  read: async (at: string, image: librbd.ImageAt, offset: number, length: number) =>
    librbd.readImage(await pool(at), image, offset, length),
  write: async (at: string, image: librbd.ImageAt, offset: number, data: Uint8Array) =>
    librbd.writeImage(await pool(at), image, offset, Buffer.from(data)),
  discard: async (at: string, image: librbd.ImageAt, offset: number, length: number) =>
    librbd.discardFrom(await pool(at), image, offset, length),
};

export type CephMethods = typeof CEPH_METHODS;

/** 2 bits for each object: of 4 MiB, in 64 MiB of map, of a PiB and more. */
const OBJECT_MAP_BYTES = 64 * 1024 * 1024;
