import { defineOperation } from '#operations/definitions/define-operation';
import { makeVolume } from '#storage/block/volumes/make-volume';
import { wholeVolume } from '#storage/block/volumes/volume-slots';

export const createVolume = defineOperation('volume.create', {
  resourceKind: 'volume',
  class: 'fast',
  slots: (id, _: { source?: undefined }) => wholeVolume(id),
  carriedOut: makeVolume,
});
