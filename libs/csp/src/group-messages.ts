import { z } from 'zod';
import { config } from '#csp/config-values';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { seconds, toSnapshot } from '#csp/snapshot-messages';
import type {
  SnapshotGroupRequest,
  SnapshotGroupView,
  VolumeGroupRequest,
  VolumeGroupView,
} from '#storage/block-storage';

export const volumeGroupBody = z.object({ name, description: description.optional(), config });

export const toVolumeGroupRequest = (body: z.output<typeof volumeGroupBody>): VolumeGroupRequest => ({
  name: body.name,
  description: body.description ?? '',
  config: body.config,
});

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
