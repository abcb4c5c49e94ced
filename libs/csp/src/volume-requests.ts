import { z } from 'zod';
import { byteSize } from '#csp/byte-size';
import { booleanOf, config, limitOf, requireBlock, textOf } from '#csp/config-values';
import { refuseVolumeParameters } from '#csp/refused-parameters';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { invalid } from '#platform/errors';
import type { VolumeRequest } from '#storage/block-storage';

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

export interface CreateVolume {
  request: VolumeRequest;
  /** Named beside the snapshot; must be its volume. */
  snapshotOf?: string;
}

export function toVolumeRequest(body: CreateVolumeBody): CreateVolume {
  const { config: map } = body;
  requireBlock(map);
  refuseVolumeParameters(map);
  const { source, snapshotOf } = sourceOf(body);
  const request: VolumeRequest = {
    name: body.name,
    sizeBytes: body.size,
    // The driver lifts it out of the parameters; others may leave it there.
    description: body.description || textOf(map, 'description') || '',
    source,
    volumeGroupId: body.volume_group_id ? ourId('Volume group', body.volume_group_id) : undefined,
    pool: textOf(map, 'pool') || undefined,
    folder: textOf(map, 'folder') ?? '',
    thick: booleanOf(map, 'thick') ?? false,
    encrypted: booleanOf(map, 'encrypted') ?? false,
    deduplication: booleanOf(map, 'dedupe_enabled') ?? false,
    limitIops: limitOf(map, 'limit_iops') ?? -1,
    limitMbps: limitOf(map, 'limit_mbps') ?? -1,
    performancePolicy: textOf(map, 'performance_policy') || undefined,
    protectionTemplate: textOf(map, 'protection_template') || undefined,
    destroyOnDelete: booleanOf(map, 'destroy_on_delete') ?? false,
    config: map,
  };
  // Without a replication partner there is nothing to sync; it must be understood all the same.
  booleanOf(map, 'sync_on_detach');
  booleanOf(map, 'multi_initiator');
  return { request, snapshotOf };
}

function sourceOf(body: CreateVolumeBody): { source?: VolumeRequest['source']; snapshotOf?: string } {
  const { base_snapshot_id: snapshot, parent_volume_id: volume } = body;
  if (!snapshot && !volume) {
    if (body.clone) throw invalid('clone', 'needs base_snapshot_id or parent_volume_id');
    return {};
  }
  if (body.clone === false) throw invalid('clone', 'must be true when a source is given');
  const volumeId = volume ? ourId('Volume', volume) : undefined;
  if (snapshot) return { source: { snapshotId: ourId('Snapshot', snapshot) }, snapshotOf: volumeId };
  return { source: { volumeId: volumeId! } };
}
