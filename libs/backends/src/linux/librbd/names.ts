/** Names of images: each leads to an id by an object of its own, and stands in the list of all. */
import { foreignError } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { ERANGE, librbd, RACES } from '#backends/linux/librbd/open-image';

const DIRECTORY = 'rbd_directory';
const ID_BYTES = 256;
/** Before each text in there. */
const LENGTH_BYTES = 4;

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

export const hasHeader = async (pool: RadosPool, id: string): Promise<boolean> =>
  (await pool.read(`rbd_header.${id}`, 1)) !== undefined;

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
