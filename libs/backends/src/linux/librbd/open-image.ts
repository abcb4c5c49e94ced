/**
 * librbd, as far as the block backend on Ceph needs it. Each function opens an image, does one thing and closes it again:
 * nothing is kept open, so nothing of ours watches an image between calls.
 */
import { type ForeignLibrary, openLibrary, type Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';

let library: ForeignLibrary | undefined;

export function librbd(): ForeignLibrary {
  library ??= openLibrary('librbd.so.1');
  return library;
}

export const ERANGE = 34;
/** A list may grow between the question how long it is and the one for it. */
export const RACES = 5;

/** By its name, or, where it may be in the trash, by its id. */
export type ImageAt = { name: string; snapshot?: string } | { id: string; snapshot?: string };

export async function withImage<T>(
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
