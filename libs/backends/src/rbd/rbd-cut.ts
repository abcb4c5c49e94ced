import type { ImageRef, StageRef } from '#backends/block-backend';
import type { OwnImage, RbdImages } from '#backends/rbd/rbd-images';
import { attemptNames } from '#backends/rbd/rbd-names';
import { type Attempt, cloneCut, withAttempt } from '#backends/rbd/rbd-staging';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

interface Cut {
  attempt: Attempt;
  source: OwnImage;
}

/**
 * Copies of several images as of one instant: their snapshots are taken while this process has the exclusive locks of all of
 * them, so nobody writes in between, whichever host he is on (invariant F4). Writers are not stopped, they wait.
 */
export async function cutTogether(
  images: RbdImages,
  wanted: readonly { stage: StageRef; source: ImageRef }[],
  pause: { pids: readonly number[]; deadlineMs: number },
  signal: LeaseSignal,
): Promise<{ pausedMs: number; cutMs: number }> {
  const cuts: Cut[] = [];
  for (const { stage, source: from } of wanted) {
    const source = await images.require(from, signal);
    const { name, cut } = attemptNames(stage);
    cuts.push({
      source,
      attempt: { stage, name, ...(source.sealed ? {} : { cut: { id: source.id, snapshot: cut } }) },
    });
  }
  let cutMs = 0;
  const cutAll = async (): Promise<void> => {
    const open = cuts.flatMap(({ source, attempt }) =>
      attempt.cut ? [{ name: source.name, snapshot: attempt.cut.snapshot }] : [],
    );
    // One order for all who do this: nobody waits for a lock that somebody has who waits for one of his.
    open.sort((a, b) => (a.name < b.name ? -1 : 1));
    mayChange(signal);
    cutMs = (await images.ceph.call(signal, 'snapshots', images.cephPool, open)).pausedMs;
    await failpoint('rbd.cut');
    if (pause.pids.length > 0 && cutMs > pause.deadlineMs)
      throw new StorageError(
        'unavailable',
        `the writers may wait for ${pause.deadlineMs} ms and waited for ${Math.round(cutMs)}; all ${cuts.length} cuts are discarded`,
        // Each attempt stops the writers for that long; whoever wants another one asks again.
        { retry: 'never' },
      );
    for (const { source, attempt } of cuts) await cloneCut(images, attempt, source, { thick: false }, signal);
  };
  const begin = (rest: readonly Cut[]): Promise<void> => {
    const [next, ...others] = rest;
    return next ? withAttempt(images, next.attempt, signal, () => begin(others)) : cutAll();
  };
  await begin(cuts);
  return { cutMs, pausedMs: pause.pids.length > 0 ? Math.round(cutMs * 10) / 10 : 0 };
}
