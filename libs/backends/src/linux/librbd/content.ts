/** The bytes of images, by librbd. */
import { foreignError } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { iterate } from '#backends/linux/librbd/diff';
import { type ImageAt, librbd, withImage } from '#backends/linux/librbd/open-image';

const EIO = 5;

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
