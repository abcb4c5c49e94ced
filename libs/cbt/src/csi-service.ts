import { limitOf, type MetadataQuery, offsetOf, required } from '#cbt/metadata-query';
import type { SnapshotKey } from '#changes/changed-blocks';
import { StorageError } from '#platform/errors';
import { isUuid } from '#platform/uuid';

/**
 * csi.v1.SnapshotMetadata, as the community's sidecar calls it (CSI specification 1.13), for the one tenant of the socket.
 * Snapshot handles are ids of CSP. The sidecar checks next to nothing, so all is checked here. Secrets are not needed, and
 * not looked at.
 */
export const VARIABLE_LENGTH = 2;

interface Common {
  starting_offset: string;
  max_results: number;
}

export interface CsiAllocatedRequest extends Common {
  snapshot_id: string;
}

export interface CsiDeltaRequest extends Common {
  base_snapshot_id: string;
  target_snapshot_id: string;
}

export function csiAllocated(tenantId: string, request: CsiAllocatedRequest): MetadataQuery {
  const { snapshot_id } = request;
  required({ snapshot_id });
  const rules = rulesOf(request);
  return { tenantId, ...rules, target: [handle('snapshot_id', snapshot_id)] };
}

export function csiDelta(tenantId: string, request: CsiDeltaRequest): MetadataQuery {
  const { base_snapshot_id, target_snapshot_id } = request;
  required({ base_snapshot_id, target_snapshot_id });
  const rules = rulesOf(request);
  const base = [handle('base_snapshot_id', base_snapshot_id)];
  return { tenantId, ...rules, base, target: [handle('target_snapshot_id', target_snapshot_id)] };
}

const rulesOf = ({ max_results, starting_offset }: Common) => ({
  perMessage: limitOf('max_results', max_results),
  from: offsetOf('starting_offset', starting_offset),
});

const MAX_SHOWN = 100;

/** What is not of our ids' form names nothing. */
function handle(field: string, text: string): SnapshotKey {
  if (!isUuid(text))
    throw new StorageError('not_found', `${field}: no snapshot ${text.slice(0, MAX_SHOWN)}`, { field });
  return { id: text };
}
