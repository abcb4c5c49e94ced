import type { Slot } from '#operations/accepting/accept';
import { VOLUME_SLOTS } from '#storage/block/volumes/volume-slots';

/** A snapshot's own: its creation and its deletion exclude each other, as does whatever deletes it with others. */
export const SNAPSHOT_SLOT = 'lifecycle';

export const ownSnapshot = (snapshotId: string): Slot => ({ resource: snapshotId, slot: SNAPSHOT_SLOT, own: true });

/**
 * What a cut needs of its volume. `still`: nobody may begin to write while it is made, so publications wait for it. A cut
 * that shares blocks is made at one instant whoever writes, and lets them pass.
 */
export function cutSlots(volumeId: string, { still }: { still: boolean }): Slot[] {
  const slots = still ? [VOLUME_SLOTS.images, VOLUME_SLOTS.exports] : [VOLUME_SLOTS.images];
  return slots.map(slot => ({ resource: volumeId, slot, own: false }));
}
