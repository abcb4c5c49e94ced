import { z } from 'zod';
import { config, textOf } from '#csp/config-values';
import { refuseGroupParameters } from '#csp/refused-parameters';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { readOnly, seconds, toSnapshot } from '#csp/snapshot-messages';
import type {
  SnapshotGroupRequest,
  SnapshotGroupView,
  VolumeGroupRequest,
  VolumeGroupView,
} from '#storage/block/block-storage';

export const volumeGroupBody = z.object({ name, description: description.optional(), config });

export function toVolumeGroupRequest(body: z.output<typeof volumeGroupBody>): VolumeGroupRequest {
  refuseGroupParameters(body.config);
  return {
    name: body.name,
    description: body.description ?? '',
    protectionTemplate: textOf(body.config, 'protection_template') || undefined,
    config: body.config,
  };
}

export const toVolumeGroup = (view: VolumeGroupView) => ({
  id: view.id,
  name: view.name,
  description: view.description,
  volumes: view.volumes,
  creation_time: seconds(view.createdAt),
  config: view.config,
});

export const snapshotGroupBody = z.object({ name, volume_group_id: id, description: description.optional(), config });

export const toSnapshotGroupRequest = (body: z.output<typeof snapshotGroupBody>): SnapshotGroupRequest => ({
  name: body.name,
  volumeGroupId: ourId('Volume group', body.volume_group_id),
  description: body.description ?? '',
  config: readOnly(body.config),
});

export const toSnapshotGroup = (view: SnapshotGroupView) => ({
  id: view.id,
  name: view.name,
  description: view.description,
  volume_group_id: view.volumeGroupId,
  volume_group_name: view.volumeGroupName,
  creation_time: seconds(view.createdAt),
  config: view.config,
  snapshots: view.snapshots.map(toSnapshot),
});
