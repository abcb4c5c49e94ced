/** The trash of a pool, by librbd. */
import { foreignError, koffi } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { ERANGE, librbd, RACES } from '#backends/linux/librbd/open-image';

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
