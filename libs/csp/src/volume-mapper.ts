import { sizeNumber } from '#csp/byte-size';
import { invalid } from '#platform/errors';
import type { PublicationView, VolumeConfig, VolumeView } from '#storage/block/block-storage';

export interface VolumeReply {
  id: string;
  name: string;
  size: number;
  used_bytes: number;
  free_bytes: number;
  description: string;
  published: boolean;
  base_snapshot_id: string;
  parent_volume_id: string;
  volume_group_id: string;
  config: VolumeConfig;
}

/** `lun_id` and `target_port` are missing on purpose: as numbers they break the driver's decoding of a volume. */
export const toVolume = (view: VolumeView): VolumeReply => ({
  id: view.id,
  name: view.name,
  size: sizeNumber(view.sizeBytes),
  // Not in the specification; members of HPE's library's volume.
  used_bytes: sizeNumber(view.usedBytes),
  free_bytes: sizeNumber(view.sizeBytes - view.usedBytes),
  description: view.description,
  published: view.published,
  base_snapshot_id: view.baseSnapshotId,
  parent_volume_id: view.parentVolumeId,
  volume_group_id: view.volumeGroupId,
  config: toConfig(view),
});

/** The specification's keys with what holds, under what was received, under what only Trivet knows. */
function toConfig(view: VolumeView): VolumeConfig {
  return {
    pool: view.pool,
    folder: view.folder,
    encrypted: false,
    thick: view.thick,
    performance_policy: 'default',
    dedupe_enabled: false,
    limit_iops: -1,
    limit_mbps: -1,
    destroy_on_delete: view.destroyOnDelete,
    sync_on_detach: true,
    ...view.config,
    clone_of: view.cloneOf,
    // Each volume has its own target: nodes may log out of it (docs/callers.md#volumes-and-their-config).
    target_scope: 'volume',
    ...backgroundOf(view),
  };
}

/**
 * The driver (3.x) waits while a status is there that is not Completed. Of a volume that it finds when it asks again, it
 * says what it was made from only when that says Completed; without, its provisioner deletes the clone and begins anew.
 */
function backgroundOf({ ready, cloneOf }: VolumeView): VolumeConfig {
  if (!ready) return { background_operation_status: 'InProgress' };
  return cloneOf === '' ? {} : { background_operation_status: 'Completed' };
}

const ACCESS_PROTOCOLS = ['iscsi', 'fc', 'nvmetcp'] as const;

export function accessProtocolOf(given: string | undefined): PublicationView['accessProtocol'] {
  const known = `use one of ${ACCESS_PROTOCOLS.join(', ')}`;
  if (!given) throw invalid('access_protocol', `required, ${known}`);
  const wanted = given.toLowerCase();
  if (wanted === 'nfs') throw invalid('access_protocol', 'nfs is for file volumes; this one is a block volume');
  const found = ACCESS_PROTOCOLS.find(protocol => protocol === wanted);
  if (!found) throw invalid('access_protocol', `unknown protocol '${given.slice(0, 30)}', ${known}`);
  return found;
}

/** Singular members are the specification's, plural ones what the driver reads. */
export function toPublication(view: PublicationView): Record<string, unknown> {
  const reply = {
    access_protocol: view.accessProtocol,
    lun_id: view.lun,
    serial_number: view.serialNumber,
  };
  if (view.accessProtocol === 'fc') return reply;
  return {
    ...reply,
    target_name: view.targetName,
    // Of a single name HPE's nodes ask one portal only, and tgtd answers with the one that was asked.
    target_names: view.discoveryIps.map(() => view.targetName),
    discovery_ip: view.discoveryIps[0] ?? '',
    discovery_ips: view.discoveryIps,
    ...(view.chap ? { chap_user: view.chap.user, chap_password: view.chap.password } : {}),
  };
}
