import { z } from 'zod';
import { byteSize } from '#csp/byte-size';
import { booleanOf, config, limitOf, requireBlock, textOf } from '#csp/config-values';
import { refuseVolumeParameters } from '#csp/refused-parameters';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { invalid } from '#platform/errors';
import type { VolumeOrigin, VolumeRequest } from '#storage/block/block-storage';

/**
 * POST volumes: create, or clone from a snapshot or a volume. Members that are not listed are let pass: newer drivers send
 * more of their volume model than this specification knows.
 */
export const createVolumeBody = z.object({
  name,
  size: byteSize.optional(),
  description: description.optional(),
  clone: z.boolean({ error: 'must be true or false' }).optional(),
  base_snapshot_id: id.optional(),
  parent_volume_id: id.optional(),
  volume_group_id: id.optional(),
  config,
});
export type CreateVolumeBody = z.output<typeof createVolumeBody>;

export function toVolumeRequest(body: CreateVolumeBody): VolumeRequest {
  const { config: map } = body;
  requireBlock(map);
  refuseVolumeParameters(map);
  const request: VolumeRequest = {
    name: body.name,
    sizeBytes: body.size,
    // The driver lifts it out of the parameters; others may leave it there.
    description: body.description || textOf(map, 'description') || '',
    source: sourceOf(body),
    volumeGroupId: body.volume_group_id ? ourId('Volume group', body.volume_group_id) : undefined,
    pool: textOf(map, 'pool') || undefined,
    folder: textOf(map, 'folder'),
    thick: booleanOf(map, 'thick'),
    encrypted: booleanOf(map, 'encrypted'),
    deduplication: booleanOf(map, 'dedupe_enabled'),
    limitIops: limitOf(map, 'limit_iops'),
    limitMbps: limitOf(map, 'limit_mbps'),
    performancePolicy: textOf(map, 'performance_policy') || undefined,
    protectionTemplate: textOf(map, 'protection_template') || undefined,
    destroyOnDelete: booleanOf(map, 'destroy_on_delete'),
    config: map,
  };
  // Without a replication partner there is nothing to sync; it must be understood all the same.
  booleanOf(map, 'sync_on_detach');
  booleanOf(map, 'multi_initiator');
  return request;
}

function sourceOf(body: CreateVolumeBody): VolumeOrigin | undefined {
  const { base_snapshot_id: snapshot, parent_volume_id: volume } = body;
  if (!snapshot && !volume) {
    if (body.clone) throw invalid('clone', 'needs base_snapshot_id or parent_volume_id');
    return undefined;
  }
  if (body.clone === false) throw invalid('clone', 'must be true when a source is given');
  const volumeId = volume ? ourId('Volume', volume) : undefined;
  return snapshot ? { snapshotId: ourId('Snapshot', snapshot), volumeId } : { volumeId: volumeId! };
}
