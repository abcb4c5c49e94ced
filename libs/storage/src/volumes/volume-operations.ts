import type { ImageRef } from '#backends/block-backend';
import { defineOperation } from '#operations/define-operation';
import { replayTarget } from '#storage/publications/publication-operations';
import { wholeVolume } from '#storage/volumes/volume-slots';

export const createVolume = defineOperation('volume.create', {
  resourceKind: 'volume',
  class: 'fast',
  slots: wholeVolume,
});

export interface CloneVolumeRequest {
  source: ImageRef;
  /** The volume that it is copied from. */
  resources: readonly [volumeId: string];
}

export const cloneVolume = defineOperation<CloneVolumeRequest>('volume.clone', {
  resourceKind: 'volume',
  class: 'copy',
  slots: wholeVolume,
});

export interface ExpandVolumeRequest {
  /** A bigint in decimal. */
  sizeBytes: string;
}

export const expandVolume = defineOperation<ExpandVolumeRequest>('volume.expand', {
  resourceKind: 'volume',
  class: 'fast',
  slots: wholeVolume,
});

export interface DeleteVolumeRequest {
  /** Its image is kept for a while. */
  bin: boolean;
}

/**
 * Also of what leaves the recycle bin. An expansion is waited for when the image is to be kept: its size must be what the
 * row says.
 */
export const deleteVolume = defineOperation<DeleteVolumeRequest>('volume.delete', {
  resourceKind: 'volume',
  class: 'destroy',
  slots: wholeVolume,
  negates: ({ bin }) => [createVolume, cloneVolume, replayTarget, ...(bin ? [] : [expandVolume])],
});
