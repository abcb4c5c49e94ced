import type { ImageRef } from '#backends/block-backend';
import { defineOperation } from '#operations/definitions/define-operation';
import { makeVolume } from '#storage/block/volumes/make-volume';
import { wholeVolume } from '#storage/block/volumes/volume-slots';

export interface CloneVolumeRequest {
  source: ImageRef;
  /** The volume that it is copied from; none for an image that is imported. */
  resources: readonly string[];
}

export const cloneVolume = defineOperation('volume.clone', {
  resourceKind: 'volume',
  class: 'copy',
  slots: (id, _: CloneVolumeRequest) => wholeVolume(id),
  carriedOut: makeVolume,
});
