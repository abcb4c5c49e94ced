import { z } from 'zod';
import { byteSize } from '#csp/byte-size';
import { booleanOf, config, limitOf, requireBlock, textOf } from '#csp/config-values';
import { unexpectedArgument } from '#csp/csp-errors';
import { description, id } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { invalid } from '#platform/errors';
import type { VolumeChanges, VolumeConfig } from '#storage/block/block-storage';

/** PUT volumes/{id}: what is not listed cannot be changed, and is refused as the specification shows. */
export const updateVolumeBody = z.strictObject({
  id: id.optional(),
  size: byteSize.optional(),
  description: description.optional(),
  volume_group_id: id.optional(),
  config,
});
export type UpdateVolumeBody = z.output<typeof updateVolumeBody>;

/** Keys of `config` that may be changed and mean something to Trivet. */
export const EDITABLE_KEYS = [
  'description',
  'performance_policy',
  'protection_template',
  'destroy_on_delete',
  'sync_on_detach',
  'limit_iops',
  'limit_mbps',
  'multi_initiator',
] as const;

/** Keys that the driver keeps in `config` for itself and its node service; Trivet stores and echoes them. */
export const DRIVER_KEYS = [
  'access_protocol',
  'allow_mutations',
  'allow_overrides',
  'chap_secret_name',
  'chap_secret_namespace',
  'fs_mode',
  'fs_owner',
  'fs_repair',
  'fs_type',
  'host_encryption',
  'host_encryption_secret_name',
  'host_encryption_secret_namespace',
  'mount_flags',
] as const;

/** Of driver and CO, in any number. */
const DRIVER_PREFIXES = ['csi.storage.k8s.io/', 'nfs_'];

const CHANGEABLE = new Set<string>([...EDITABLE_KEYS, ...DRIVER_KEYS]);
const mayChange = (key: string): boolean =>
  CHANGEABLE.has(key) || DRIVER_PREFIXES.some(prefix => key.startsWith(prefix));

/** Undefined: the request changes nothing. */
export function toVolumeChanges(volumeId: string, body: UpdateVolumeBody): VolumeChanges | undefined {
  if (body.id !== undefined && body.id !== volumeId) throw invalid('id', 'must be the id of the path, or absent');
  const { config: map } = body;
  const fixed = Object.keys(map).find(key => !mayChange(key));
  if (fixed !== undefined) throw unexpectedArgument(fixed);
  const changes: VolumeChanges = {
    ...(body.size === undefined ? {} : { sizeBytes: body.size }),
    ...descriptionOf(body),
    ...groupOf(body),
    ...settingsOf(map),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

function descriptionOf(body: UpdateVolumeBody): Pick<VolumeChanges, 'description'> {
  const given = body.description ?? textOf(body.config, 'description');
  return given === undefined ? {} : { description: given };
}

/**
 * The driver writes `"volume_group_id":""` into every edit whatever it is about: it means "leave the group" only when
 * nothing else is said (docs/callers.md#volumes-and-their-config).
 */
function groupOf(body: UpdateVolumeBody): Pick<VolumeChanges, 'volumeGroupId'> {
  const { volume_group_id: group, size, description: text, config: map } = body;
  if (group === undefined) return {};
  if (group !== '') return { volumeGroupId: ourId('Volume group', group) };
  const alone = size === undefined && text === undefined && Object.keys(map).length === 0;
  return alone ? { volumeGroupId: null } : {};
}

function settingsOf(map: VolumeConfig): VolumeChanges {
  if (Object.keys(map).length === 0) return {};
  booleanOf(map, 'sync_on_detach');
  booleanOf(map, 'multi_initiator');
  requireBlock(map);
  const changes: VolumeChanges = { config: map };
  const policy = textOf(map, 'performance_policy');
  if (policy !== undefined) changes.performancePolicy = policy || 'default';
  const template = textOf(map, 'protection_template');
  if (template !== undefined) changes.protectionTemplate = template || null;
  const destroy = booleanOf(map, 'destroy_on_delete');
  if (destroy !== undefined) changes.destroyOnDelete = destroy;
  const iops = limitOf(map, 'limit_iops');
  if (iops !== undefined) changes.limitIops = iops;
  const mbps = limitOf(map, 'limit_mbps');
  if (mbps !== undefined) changes.limitMbps = mbps;
  return changes;
}
