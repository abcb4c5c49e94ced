import { z } from 'zod';
import { sizeNumber } from '#csp/byte-size';
import { booleanOf, config } from '#csp/config-values';
import { description, id, name } from '#csp/request-body';
import { ourId } from '#csp/resource-id';
import { invalid } from '#platform/errors';
import type { SnapshotRequest, SnapshotView, VolumeConfig } from '#storage/block/block-storage';

export const seconds = (date: Date): number => Math.floor(date.getTime() / 1000);

export const snapshotBody = z.object({ name, volume_id: id, description: description.optional(), config });

/** The driver's name for what it makes only to clone from, and never deletes (docs/callers.md#snapshots-for-clones). */
const FOR_CLONE = /^snap-for-clone-/;

export const toSnapshotRequest = (body: z.output<typeof snapshotBody>): SnapshotRequest => ({
  name: body.name,
  volumeId: ourId('Volume', body.volume_id),
  description: body.description ?? '',
  hidden: FOR_CLONE.test(body.name),
  force: String(body.config.force) === 'true',
  config: readOnly(body.config),
});

const READ_ONLY = 'snapshots are read-only and not exported; clone it';

/** What no backend here can do is refused, not kept as if it held. */
export function readOnly(map: VolumeConfig): VolumeConfig {
  for (const key of ['online', 'writable']) if (booleanOf(map, key)) throw invalid(`config.${key}`, READ_ONLY);
  // Of HPE's classes for 3PAR and its successors.
  if (booleanOf(map, 'read_only') === false) throw invalid('config.read_only', READ_ONLY);
  return map;
}

export const toSnapshot = (view: SnapshotView) => ({
  id: view.id,
  name: view.name,
  size: sizeNumber(view.sizeBytes),
  description: view.description,
  volume_id: view.volumeId,
  volume_name: view.volumeName,
  creation_time: seconds(view.createdAt),
  ready_to_use: view.ready,
  in_use: view.inUse,
  config: { online: false, writable: false, ...view.config },
});
