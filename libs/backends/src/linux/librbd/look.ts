/** What librbd says of an image. */
import { foreignError, koffi, type Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { hasHeader, idOfName } from '#backends/linux/librbd/names';
import { ERANGE, type ImageAt, librbd, RACES, withImage } from '#backends/linux/librbd/open-image';

const ENOENT = 2;
/** Of an image that is there and cannot be opened; no errno. */
const SHUT = 'ESHUT';

export interface ImageSnapshot {
  id: number;
  name: string;
  size: number;
}

export interface ParentOf {
  poolId: number;
  imageId: string;
  snapshot: string;
  inTrash: boolean;
}

export interface ImageFacts {
  id: string;
  size: number;
  objectBytes: number;
  /** Milliseconds since 1970. */
  modifiedAt: number;
  /** Its object map says what there is. */
  isMapped: boolean;
  snapshots: ImageSnapshot[];
  parent?: ParentOf;
}

/**
 * Undefined when there is none. To open it may also fail with ENOENT for what it was cloned from, or in the middle of a change:
 * what is there and stays shut is ESHUT, since who takes it for gone makes another one, or removes its name.
 */
export async function lookAtImage(pool: RadosPool, at: ImageAt): Promise<ImageFacts | undefined> {
  for (let attempt = 1; ; attempt++)
    try {
      return await withImage(pool, at, true, factsOf);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error;
      if (at.snapshot !== undefined || !(await isThere(pool, at))) return undefined;
      if (attempt === RACES)
        throw Object.assign(new Error('there, and not to be opened'), { code: SHUT, syscall: 'rbd_open' });
    }
}

const isThere = async (pool: RadosPool, at: ImageAt): Promise<boolean> =>
  'id' in at ? hasHeader(pool, at.id) : (await idOfName(pool, at.name)) !== undefined;

async function factsOf(image: Pointer): Promise<ImageFacts> {
  const rbd = librbd();
  const id = Buffer.alloc(64);
  await rbd.call('int rbd_get_id(void *image, void *id, size_t length)', image, id, id.length);
  const info = Buffer.alloc(INFO_BYTES);
  await rbd.call('int rbd_stat(void *image, void *info, size_t size)', image, info, INFO_BYTES);
  const time = Buffer.alloc(16);
  await rbd.call('int rbd_get_modify_timestamp(void *image, void *time)', image, time);
  const flags = Buffer.alloc(8);
  await rbd.call('int rbd_get_flags(void *image, void *flags)', image, flags);
  return {
    id: cString(id),
    size: Number(info.readBigUInt64LE(0)),
    objectBytes: Number(info.readBigUInt64LE(8)),
    modifiedAt: Number(time.readBigInt64LE(0)) * 1_000 + Math.floor(Number(time.readBigInt64LE(8)) / 1e6),
    isMapped: (flags.readUInt8(0) & MAP_INVALID) === 0,
    snapshots: await snapshotsOf(image),
    ...(await parentOf(image)),
  };
}

const MAP_INVALID = 1;
/** Of rbd_image_info_t. */
const INFO_BYTES = 160;

async function snapshotsOf(image: Pointer): Promise<ImageSnapshot[]> {
  const rbd = librbd();
  const EACH = 24;
  for (let room = 16, attempt = 0; attempt < RACES; attempt++) {
    const [list, count] = [Buffer.alloc((room + 1) * EACH), Buffer.alloc(4)];
    count.writeInt32LE(room);
    const found = await rbd.ask('int rbd_snap_list(void *image, void *list, void *count)', image, list, count);
    if (found === -ERANGE) room = count.readInt32LE() + 16;
    else if (found < 0) throw foreignError('rbd_snap_list', found);
    else {
      const all = Array.from({ length: found }, (_, n) => ({
        id: Number(list.readBigUInt64LE(n * EACH)),
        size: Number(list.readBigUInt64LE(n * EACH + 8)),
        name: koffi().decode.string(koffi().decode(list, n * EACH + 16, 'void *')),
      }));
      if (found > 0) rbd.now('void rbd_snap_list_end(void *list)', list);
      return all;
    }
  }
  throw foreignError('rbd_snap_list', -ERANGE);
}

async function parentOf(image: Pointer): Promise<{ parent?: ParentOf }> {
  const rbd = librbd();
  const [parent, snapshot] = [Buffer.alloc(48), Buffer.alloc(24)];
  const get = 'int rbd_get_parent(void *image, void *parent, void *snapshot)';
  const answer = await rbd.ask(get, image, parent, snapshot);
  if (answer === -ENOENT) return {};
  if (answer < 0) throw foreignError('rbd_get_parent', answer);
  const text = (buffer: Buffer, at: number): string => koffi().decode.string(koffi().decode(buffer, at, 'void *'));
  const found = {
    poolId: Number(parent.readBigInt64LE(0)),
    imageId: text(parent, 24),
    inTrash: parent.readUInt8(40) !== 0,
    snapshot: text(snapshot, 16),
  };
  rbd.now('void rbd_linked_image_spec_cleanup(void *parent)', parent);
  rbd.now('void rbd_snap_spec_cleanup(void *snapshot)', snapshot);
  return { parent: found };
}

/** Addresses of who has it open. */
export const watchersOf = (pool: RadosPool, at: ImageAt): Promise<string[]> =>
  withImage(pool, at, true, async image => {
    const EACH = 24;
    const ROOM = 64;
    const [list, count] = [Buffer.alloc(ROOM * EACH), Buffer.alloc(8)];
    count.writeBigUInt64LE(BigInt(ROOM));
    await librbd().call('int rbd_watchers_list(void *image, void *list, void *count)', image, list, count);
    const found = Number(count.readBigUInt64LE());
    const all = Array.from({ length: found }, (_, n) =>
      koffi().decode.string(koffi().decode(list, n * EACH, 'void *')),
    );
    if (found > 0) librbd().now('void rbd_watchers_list_cleanup(void *list, size_t count)', list, found);
    return all;
  });

const cString = (buffer: Buffer): string => buffer.toString('utf8', 0, Math.max(0, buffer.indexOf(0)));
