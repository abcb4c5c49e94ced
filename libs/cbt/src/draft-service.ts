import { BadToken } from '#cbt/cbt-errors';
import { limitOf, type MetadataQuery, offsetOf, required, sessionOf, uncovered } from '#cbt/metadata-query';
import type { SnapshotKey } from '#changes/changed-blocks';
import { StorageError } from '#platform/errors';
import type { SnapshotSession, SnapshotSessions } from '#storage/block/sessions/snapshot-session';

/**
 * KEP 3314's draft of the service. Problems of the token come before all others, and a snapshot that its session does not
 * cover is one of them; the volume is said beside the snapshot,
 * and must be the snapshot's own. Numbers are unsigned.
 */
export const VARIABLE_LENGTH = 1;

interface Common {
  session_token: string;
  volume_id: string;
  max_results: number;
}

export interface DraftAllocatedRequest extends Common {
  snapshot: string;
  starting_offset: string;
}

export interface DraftDeltaRequest extends Common {
  base_snapshot: string;
  target_snapshot: string;
  starting_byte_offset: string;
}

type Sessions = Pick<SnapshotSessions, 'authenticate'>;

export async function draftAllocated(sessions: Sessions, request: DraftAllocatedRequest): Promise<MetadataQuery> {
  const session = await sessionOf(sessions, 'session_token', request.session_token);
  const { volume_id, snapshot, max_results, starting_offset } = request;
  required({ volume_id, snapshot });
  return {
    tenantId: session.tenantId,
    target: [targetOf(session, volume_id, snapshot)],
    from: offsetOf('starting_offset', starting_offset),
    perMessage: limitOf('max_results', max_results),
  };
}

export async function draftDelta(sessions: Sessions, request: DraftDeltaRequest): Promise<MetadataQuery> {
  const session = await sessionOf(sessions, 'session_token', request.session_token);
  const { volume_id, base_snapshot, target_snapshot, max_results, starting_byte_offset } = request;
  required({ volume_id, base_snapshot, target_snapshot });
  const base = baseOf(session, volume_id, base_snapshot);
  return {
    tenantId: session.tenantId,
    target: [targetOf(session, volume_id, target_snapshot)],
    base: [base],
    from: offsetOf('starting_byte_offset', starting_byte_offset),
    perMessage: limitOf('max_results', max_results),
  };
}

/** NOT_FOUND when the session covers such a snapshot, but of another volume. */
function targetOf(session: SnapshotSession, volumeId: string, text: string): SnapshotKey {
  const id = session.resolve({ volumeId, name: text });
  const meant = session.snapshots.filter(snapshot => snapshot.id === text || snapshot.name === text);
  if (meant.length === 0) throw new BadToken(uncovered(text));
  const byId = meant.find(snapshot => snapshot.id === text && snapshot.volumeId === volumeId)?.id;
  const found = byId ?? id;
  if (found === undefined)
    throw new StorageError('not_found', 'volume_id: there is no such volume, or the snapshot is not one of it');
  return { id: found };
}

/** A base of another volume is for the domain to refuse. */
function baseOf(session: SnapshotSession, volumeId: string, text: string): SnapshotKey {
  const id =
    session.resolve({ id: text }) ?? session.resolve({ volumeId, name: text }) ?? session.resolve({ name: text });
  if (id === undefined) throw new BadToken(uncovered(text));
  return { id };
}
