import type { Slot } from '#operations/accepting/accept';

/**
 * What operations need of a volume for themselves; two that share none run together.
 *
 *                      lifecycle  exports  images
 *   create, clone          x         x       x
 *   expand                 x         x       x
 *   delete                 x         x       x
 *   publish, unpublish, replay       x
 *   snapshot                                 x
 *   snapshot by copying, group cut   x       x
 *
 * A cut by sharing blocks is of one instant whoever writes; during the others nobody may begin to write.
 */
export const VOLUME_SLOTS = { lifecycle: 'lifecycle', exports: 'exports', images: 'images' } as const;

/** Whatever ends a volume stops it; it is defined above, where targets are known. */
export const REPLAY = { kind: 'volume.replay' } as const;

export const wholeVolume = (volumeId: string): Slot[] =>
  Object.values(VOLUME_SLOTS).map(slot => ({ resource: volumeId, slot, own: true }));
