/** How images come about, by librbd, and get larger or data of their own. */
import type { Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { librbd, withImage } from '#backends/linux/librbd/open-image';

/** layering, exclusive-lock, object-map, fast-diff, deep-flatten. */
const FEATURES = 1 + 4 + 8 + 16 + 32;
const OPTION = { features: 1, order: 2, dataPool: 10, cloneFormat: 12 } as const;

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
