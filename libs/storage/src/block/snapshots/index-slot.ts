import type { Slot } from '#operations/accepting/accept';

/**
 * Whoever changes a volume's change index, or gives up an image that its next step needs, has this slot of the volume:
 * one at a time, in the order in which they came.
 */
export const indexSlot = (volumeId: string): Slot => ({ resource: volumeId, slot: 'index', own: true });
