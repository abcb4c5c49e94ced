/** Where images hold data, or differ from a snapshot, by librbd. */
import { foreignError, koffi, type Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { type ImageAt, librbd, withImage } from '#backends/linux/librbd/open-image';

const ECANCELED = 125;

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

export async function iterate(image: Pointer, range: DiffRange, onRange: OnRange): Promise<boolean> {
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
