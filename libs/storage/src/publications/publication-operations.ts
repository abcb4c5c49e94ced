import type { Slot } from '#operations/accept';
import { defineOperation } from '#operations/define-operation';
import { VOLUME_SLOTS } from '#storage/volumes/volume-slots';

export interface PublicationRequest {
  volumeId: string;
  resources: readonly [volumeId: string];
}

const publicationSlots = (publicationId: string, { volumeId }: PublicationRequest): Slot[] => [
  { resource: publicationId, slot: 'lifecycle', own: true },
  { resource: volumeId, slot: VOLUME_SLOTS.exports, own: false },
];

export const publishVolume = defineOperation<PublicationRequest>('volume.publish', {
  resourceKind: 'publication',
  class: 'fast',
  slots: publicationSlots,
});

export const unpublishVolume = defineOperation<PublicationRequest>('volume.unpublish', {
  resourceKind: 'publication',
  class: 'fast',
  slots: publicationSlots,
  negates: () => [publishVolume],
});

/** The volume's target as Postgres says, once more. */
export const replayTarget = defineOperation<{ volumeId: string }>('volume.replay', {
  resourceKind: 'volume',
  class: 'fast',
  slots: volumeId => [{ resource: volumeId, slot: VOLUME_SLOTS.exports, own: true }],
});
