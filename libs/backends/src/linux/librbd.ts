/**
 * librbd, as far as the block backend on Ceph needs it. Each function opens an image, does one thing and closes it again:
 * nothing is kept open, so nothing of ours watches an image between calls.
 */
import { type ForeignLibrary, foreignError, koffi, openLibrary, type Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';

let library: ForeignLibrary | undefined;

function librbd(): ForeignLibrary {
  library ??= openLibrary('librbd.so.1');
  return library;
}

/** layering, exclusive-lock, object-map, fast-diff, deep-flatten. */
const FEATURES = 1 + 4 + 8 + 16 + 32;
const OPTION = { features: 1, order: 2, dataPool: 10, cloneFormat: 12 } as const;
const ENOENT = 2;
const EIO = 5;
const ERANGE = 34;
const RACES = 5;
/** Of an image that is there and cannot be opened; no errno. */
const SHUT = 'ESHUT';

/** By its name, or, where it may be in the trash, by its id. */
export type ImageAt = { name: string; snapshot?: string } | { id: string; snapshot?: string };

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

async function withImage<T>(
  pool: RadosPool,
  at: ImageAt,
  readOnly: boolean,
  work: (image: Pointer) => Promise<T>,
): Promise<T> {
  const rbd = librbd();
  const made: [Pointer] = [null];
  const way = `${'id' in at ? 'rbd_open_by_id' : 'rbd_open'}${readOnly ? '_read_only' : ''}`;
  const open = `int ${way}(void *io, const char *name, _Out_ void **image, const char *snapshot)`;
  await rbd.call(open, pool.io, 'id' in at ? at.id : at.name, made, at.snapshot ?? null);
  try {
    return await work(made[0]);
  } finally {
    await rbd.ask('int rbd_close(void *image)', made[0]);
  }
}

async function withOptions<T>(
  values: Partial<Record<keyof typeof OPTION, number | string>>,
  work: (options: Pointer) => Promise<T>,
): Promise<T> {
  const rbd = librbd();
  const made: [Pointer] = [null];
  rbd.now('void rbd_image_options_create(_Out_ void **options)', made);
  try {
    for (const [name, value] of Object.entries(values)) {
      const option = OPTION[name as keyof typeof OPTION];
      if (typeof value === 'number')
        rbd.now('int rbd_image_options_set_uint64(void *options, int name, uint64_t value)', made[0], option, value);
      else
        rbd.now('int rbd_image_options_set_string(void *options, int name, const char *value)', made[0], option, value);
    }
    return await work(made[0]);
  } finally {
    rbd.now('void rbd_image_options_destroy(void *options)', made[0]);
  }
}

export async function createImage(pool: RadosPool, name: string, size: number, dataPool?: string): Promise<void> {
  const options = { features: FEATURES, order: 22, ...(dataPool === undefined ? {} : { dataPool }) };
  const create = 'int rbd_create4(void *io, const char *name, uint64_t size, void *options)';
  await withOptions(options, made => librbd().call(create, pool.io, name, size, made));
}

/** Clone format 2: the snapshot may be removed while the clone lives. */
export async function cloneImage(
  pool: RadosPool,
  source: { name: string; snapshot: string },
  name: string,
  dataPool?: string,
): Promise<void> {
  const options = { features: FEATURES, order: 22, cloneFormat: 2, ...(dataPool === undefined ? {} : { dataPool }) };
  const clone =
    'int rbd_clone3(void *io, const char *source, const char *snapshot, void *to, const char *name, void *options)';
  await withOptions(options, made => librbd().call(clone, pool.io, source.name, source.snapshot, pool.io, name, made));
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

const hasHeader = async (pool: RadosPool, id: string): Promise<boolean> =>
  (await pool.read(`rbd_header.${id}`, 1)) !== undefined;

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

export const takeSnapshot = (pool: RadosPool, at: ImageAt, name: string): Promise<void> =>
  withImage(pool, at, false, async image => {
    await librbd().call('int rbd_snap_create(void *image, const char *name)', image, name);
  });

export const removeSnapshot = (pool: RadosPool, at: ImageAt, name: string): Promise<void> =>
  withImage(pool, at, false, async image => {
    await librbd().call('int rbd_snap_remove(void *image, const char *name)', image, name);
  });

/**
 * Snapshots of several images as of one instant: all are held by their exclusive locks meanwhile, which their writers give
 * up when asked, and get back afterwards. Gives for how long nobody could write.
 */
export async function takeSnapshots(
  pool: RadosPool,
  cuts: readonly { name: string; snapshot: string }[],
): Promise<{ pausedMs: number }> {
  const rbd = librbd();
  let begun = 0;
  let pausedMs = 0;
  const hold = async (waiting: typeof cuts, held: readonly Pointer[]): Promise<void> => {
    const [next, ...others] = waiting;
    if (next)
      return withImage(pool, { name: next.name }, false, async image => {
        begun ||= performance.now();
        await rbd.call('int rbd_lock_acquire(void *image, int mode)', image, 0);
        await hold(others, [...held, image]);
      });
    for (const [n, { snapshot }] of cuts.entries())
      await rbd.call('int rbd_snap_create(void *image, const char *name)', held[n], snapshot);
    pausedMs = performance.now() - begun;
  };
  await hold(cuts, []);
  return { pausedMs };
}

/** Never smaller; a size that it has is fine. */
export const growTo = (pool: RadosPool, name: string, size: number): Promise<void> =>
  withImage(pool, { name }, false, async image => {
    const resize = 'int rbd_resize2(void *image, uint64_t size, bool shrink, void *progress, void *argument)';
    await librbd().call(resize, image, size, false, null, null);
  });

export const flattenImage = (pool: RadosPool, name: string): Promise<void> =>
  withImage(pool, { name }, false, async image => {
    await librbd().call('int rbd_flatten(void *image)', image);
  });

/** Fails with EEXIST when the new name is taken. */
export async function renameImage(pool: RadosPool, from: string, to: string): Promise<void> {
  await librbd().call('int rbd_rename(void *io, const char *from, const char *to)', pool.io, from, to);
}

/** Its id alone, which takes two requests and no opening of it and its parent. Undefined where the name leads to no image. */
export async function idOfName(pool: RadosPool, name: string): Promise<string | undefined> {
  const id = (await pool.read(`rbd_id.${name}`, ID_BYTES))?.subarray(LENGTH_BYTES).toString();
  return id && (await hasHeader(pool, id)) ? id : undefined;
}

/** What leads from a name to an image, and not the image. */
export const removeName = (pool: RadosPool, name: string): Promise<void> => pool.remove(`rbd_id.${name}`);

/** The id that the list of images has for a name. */
export async function listedId(pool: RadosPool, name: string): Promise<string | undefined> {
  const found = await pool.keys(DIRECTORY, `name_${name}`, '', 1);
  return found.find(([key]) => key === `name_${name}`)?.[1].slice(LENGTH_BYTES);
}

/** The name alone, and only while the list has it for that id: rbd_remove would also take an image of that name from the trash. */
export async function unlist(pool: RadosPool, name: string, id: string): Promise<void> {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(id.length);
  const listed = { key: `name_${name}`, is: 'equal', value: `${length.toString()}${id}` } as const;
  await pool.changeKeys(DIRECTORY, [listed], {}, [listed.key, `id_${id}`]);
}

const DIRECTORY = 'rbd_directory';
const ID_BYTES = 256;
/** Before each text in there. */
const LENGTH_BYTES = 4;

export async function moveToTrash(pool: RadosPool, name: string): Promise<void> {
  await librbd().call('int rbd_trash_move(void *io, const char *name, uint64_t delay)', pool.io, name, 0);
}

export async function removeFromTrash(pool: RadosPool, id: string): Promise<void> {
  await librbd().call('int rbd_trash_remove(void *io, const char *id, bool force)', pool.io, id, false);
}

export interface TrashedImage {
  id: string;
  name: string;
  /** Seconds since 1970. */
  movedAt: number;
}

export async function listTrash(pool: RadosPool): Promise<TrashedImage[]> {
  const rbd = librbd();
  const EACH = 40;
  const count = Buffer.alloc(8);
  for (let room = 64, attempt = 0; attempt < RACES; attempt++) {
    const list = Buffer.alloc(room * EACH);
    count.writeBigUInt64LE(BigInt(room));
    const answer = await rbd.ask('int rbd_trash_list(void *io, void *list, void *count)', pool.io, list, count);
    const found = Number(count.readBigUInt64LE());
    if (answer === -ERANGE) {
      room = found + 64;
      continue;
    }
    if (answer < 0) throw foreignError('rbd_trash_list', answer);
    const text = (at: number): string => koffi().decode.string(koffi().decode(list, at, 'void *'));
    const all = Array.from({ length: found }, (_, n) => ({
      id: text(n * EACH),
      name: text(n * EACH + 8),
      movedAt: Number(list.readBigInt64LE(n * EACH + 24)),
    }));
    if (found > 0) rbd.now('void rbd_trash_list_cleanup(void *list, size_t count)', list, found);
    return all;
  }
  throw foreignError('rbd_trash_list', -ERANGE);
}

export async function listImageNames(pool: RadosPool): Promise<string[]> {
  const size = Buffer.alloc(8);
  for (let room = 65_536, attempt = 0; attempt < RACES; attempt++) {
    const names = Buffer.alloc(room);
    size.writeBigUInt64LE(BigInt(room));
    const answer = await librbd().ask('int rbd_list(void *io, void *names, void *size)', pool.io, names, size);
    if (answer >= 0) return names.toString('utf8', 0, answer).split('\0').filter(Boolean);
    if (answer !== -ERANGE) throw foreignError('rbd_list', answer);
    room = Number(size.readBigUInt64LE()) + 65_536;
  }
  throw foreignError('rbd_list', -ERANGE);
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

/** Begin and length of each range that holds data, or that differs from `since`; `isHole`: zeros now. False ends it. */
export type OnRange = (offset: number, length: number, isHole: boolean) => boolean;

export interface DiffRange {
  /** A snapshot of the same image; without it everything that holds data. */
  since?: string;
  offset: number;
  length: number;
  /** In whole objects, by the object map alone. */
  whole: boolean;
  /** Also what the image has of its parent. */
  parent: boolean;
}

/** Each range comes over to this thread by itself, which costs it some microseconds. */
export const diffImage = (
  pool: RadosPool,
  at: ImageAt,
  ranges: readonly DiffRange[],
  onRange: OnRange,
): Promise<void> =>
  withImage(pool, at, true, async image => {
    for (const range of ranges) if (!(await iterate(image, range, onRange))) return;
  });

let diffCallback: ReturnType<ReturnType<typeof koffi>['pointer']> | undefined;

async function iterate(image: Pointer, range: DiffRange, onRange: OnRange): Promise<boolean> {
  const ffi = koffi();
  diffCallback ??= ffi.pointer(ffi.proto('int TrivetDiff(uint64_t offset, size_t length, int exists, void *argument)'));
  let wanted = true;
  const each = (offset: number | bigint, length: number | bigint, exists: number): number => {
    wanted &&= onRange(Number(offset), Number(length), exists === 0);
    return wanted ? 0 : -ECANCELED;
  };
  const callback = ffi.register(each, diffCallback);
  try {
    const { since = null, offset, length, whole, parent } = range;
    const flags = [parent ? 1 : 0, whole ? 1 : 0];
    const method =
      'int rbd_diff_iterate2(void *image, const char *since, uint64_t offset, uint64_t length, uint8_t parent, ' +
      'uint8_t whole, TrivetDiff *callback, void *argument)';
    const answer = await librbd().ask(method, image, since, offset, length, ...flags, callback, null);
    if (answer < 0 && wanted) throw foreignError('rbd_diff_iterate2', answer);
    return wanted;
  } finally {
    ffi.unregister(callback);
  }
}

/**
 * Zeros that take their room, wherever nothing is. In portions, each under the exclusive lock, which a writer gives up when
 * asked and gets back: so what it writes meanwhile stays.
 */
export async function fillWithZeros(pool: RadosPool, name: string, offset: number, length: number): Promise<void> {
  for (let at = offset; at < offset + length; ) {
    const end = Math.min(offset + length, (Math.floor(at / PORTION) + 1) * PORTION);
    await fillPortion(pool, name, at, end);
    at = end;
  }
}

/** Of objects, so that ranges are aligned. */
const PORTION = 64 * 1024 * 1024;
const THICK = 1;
const ECANCELED = 125;

const fillPortion = (pool: RadosPool, name: string, from: number, end: number): Promise<void> =>
  withImage(pool, { name }, false, async image => {
    await librbd().call('int rbd_lock_acquire(void *image, int mode)', image, 0);
    const start = Math.floor(from / PORTION) * PORTION;
    const taken: [number, number][] = [];
    await iterate(image, { offset: start, length: end - start, whole: false, parent: false }, (offset, bytes) => {
      taken.push([offset, offset + bytes]);
      return true;
    });
    const zeros = 'int64_t rbd_write_zeroes(void *image, uint64_t offset, size_t length, int how, int flags)';
    let at = from;
    for (const [begin, after] of [...taken.sort(([a], [b]) => a - b), [end, end] as const]) {
      const gap = Math.min(begin, end) - at;
      if (gap > 0) await librbd().call(zeros, image, at, gap, THICK, 0);
      at = Math.max(at, after);
    }
  });

export const readImage = (pool: RadosPool, at: ImageAt, offset: number, length: number): Promise<Buffer> =>
  withImage(pool, at, true, async image => {
    const data = Buffer.alloc(length);
    const read = 'int64_t rbd_read(void *image, uint64_t offset, size_t length, void *data)';
    const got = await librbd().call(read, image, offset, length, data);
    return data.subarray(0, got);
  });

export const writeImage = (pool: RadosPool, at: ImageAt, offset: number, data: Buffer): Promise<void> =>
  withImage(pool, at, false, async image => {
    const write = 'int64_t rbd_write(void *image, uint64_t offset, size_t length, const void *data)';
    const written = await librbd().call(write, image, offset, data.length, data);
    if (written !== data.length) throw foreignError('rbd_write', -EIO);
    await librbd().call('int rbd_flush(void *image)', image);
  });

export const discardFrom = (pool: RadosPool, at: ImageAt, offset: number, length: number): Promise<void> =>
  withImage(pool, at, false, async image => {
    await librbd().call('int rbd_discard(void *image, uint64_t offset, uint64_t length)', image, offset, length);
    await librbd().call('int rbd_flush(void *image)', image);
  });

const cString = (buffer: Buffer): string => buffer.toString('utf8', 0, Math.max(0, buffer.indexOf(0)));
