import { BadToken } from '#cbt/cbt-errors';
import { coveredKey, limitOf, type MetadataQuery, offsetOf, required, sessionOf } from '#cbt/metadata-query';
import type { SnapshotSession, SnapshotSessions } from '#storage/block/sessions/snapshot-session';

/**
 * snapshotmetadata.SnapshotMetadata, which in a cluster the community's sidecar answers. Its token is one of a snapshot
 * session here, its namespace the tenant's name. In deltas field 3 was a name before v0.2.0 of that service and has been
 * an id since, so both are taken.
 */
export const VARIABLE_LENGTH = 2;

interface Common {
  security_token: string;
  namespace: string;
  starting_offset: string;
  max_results: number;
}

export interface SidecarAllocatedRequest extends Common {
  snapshot_name: string;
}

export interface SidecarDeltaRequest extends Common {
  base_snapshot_id: string;
  target_snapshot_name: string;
}

type Sessions = Pick<SnapshotSessions, 'authenticate'>;

export async function sidecarAllocated(sessions: Sessions, request: SidecarAllocatedRequest): Promise<MetadataQuery> {
  const session = await sessionOf(sessions, 'security_token', request.security_token);
  const { namespace, snapshot_name } = request;
  required({ namespace, snapshot_name });
  const common = commonOf(session, request);
  return { ...common, target: [coveredKey(session, snapshot_name)] };
}

export async function sidecarDelta(sessions: Sessions, request: SidecarDeltaRequest): Promise<MetadataQuery> {
  const session = await sessionOf(sessions, 'security_token', request.security_token);
  const { namespace, base_snapshot_id, target_snapshot_name } = request;
  required({ namespace, base_snapshot_id, target_snapshot_name });
  const common = commonOf(session, request);
  return {
    ...common,
    target: [coveredKey(session, target_snapshot_name)],
    base: [coveredKey(session, base_snapshot_id)],
  };
}

function commonOf(session: SnapshotSession, { namespace, max_results, starting_offset }: Common) {
  if (namespace !== session.tenantName) throw new BadToken();
  const perMessage = limitOf('max_results', max_results);
  return { tenantId: session.tenantId, perMessage, from: offsetOf('starting_offset', starting_offset) };
}
