import { z } from 'zod';
import { config, textOf } from '#csp/config-values';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { seconds, toSnapshot } from '#csp/snapshot-messages';
import { invalid } from '#platform/errors';
import type {
  SnapshotGroupRequest,
  SnapshotGroupView,
  VolumeGroupRequest,
  VolumeGroupView,
} from '#storage/block-storage';

export const volumeGroupBody = z.object({ name, description: description.optional(), config });

export function toVolumeGroupRequest(body: z.output<typeof volumeGroupBody>): VolumeGroupRequest {
  // Kept and not followed, it would look as if the members were protected.
  if (textOf(body.config, 'protection_template'))
    throw invalid('config.protection_template', 'templates protect volumes: give it to each volume of the group');
  return { name: body.name, description: body.description ?? '', config: body.config };
}

export const toVolumeGroup = (view: VolumeGroupView) => ({
  id: view.id,
  name: view.name,
  description: view.description,
  config: view.config,
  volume_ids: view.volumeIds,
});

export const snapshotGroupBody = z.object({ name, volume_group_id: id, description: description.optional() });

export const toSnapshotGroupRequest = (body: z.output<typeof snapshotGroupBody>): SnapshotGroupRequest => ({
  name: body.name,
  volumeGroupId: ourId('Volume group', body.volume_group_id),
  description: body.description ?? '',
});

export const toSnapshotGroup = (view: SnapshotGroupView) => ({
  id: view.id,
  name: view.name,
  description: view.description,
  volume_group_id: view.volumeGroupId,
  creation_time: seconds(view.createdAt),
  snapshots: view.snapshots.map(toSnapshot),
});
