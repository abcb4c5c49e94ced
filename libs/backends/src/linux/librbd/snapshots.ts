/** Snapshots of images, by librbd. */
import type { Pointer } from '#backends/linux/foreign';
import type { RadosPool } from '#backends/linux/librados';
import { type ImageAt, librbd, withImage } from '#backends/linux/librbd/open-image';

export const takeSnapshot = (pool: RadosPool, at: ImageAt, name: string): Promise<void> =>
  withImage(pool, at, false, async image => {
    await librbd().call('int rbd_snap_create(void *image, const char *name)', image, name);
  });

export const removeSnapshot = (pool: RadosPool, at: ImageAt, snapshot: string | number): Promise<void> =>
  withImage(pool, at, false, async image => {
    if (typeof snapshot === 'string')
      await librbd().call('int rbd_snap_remove(void *image, const char *name)', image, snapshot);
    else await librbd().call('int rbd_snap_remove_by_id(void *image, uint64_t id)', image, snapshot);
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
