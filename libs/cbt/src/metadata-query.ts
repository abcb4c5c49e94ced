import { BadToken } from '#cbt/cbt-errors';
import { rangesPerMessage } from '#cbt/range-encoder';
import type { ChangedBlocks, ChangedRanges, Offset, SnapshotKey } from '#changes/changed-blocks';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import type { SnapshotSession, SnapshotSessions } from '#storage/block/sessions/snapshot-session';

/** What every service makes of its request. */
export interface MetadataQuery {
  tenantId: string;
  /** What the caller may have meant, the likeliest first. */
  target: readonly SnapshotKey[];
  /** Present: a delta. */
  base?: readonly SnapshotKey[];
  from: Offset;
  perMessage: number;
}

/** The ranges of the first meaning that names something. */
export async function ask(changes: ChangedBlocks, query: MetadataQuery, signal: AbortSignal): Promise<ChangedRanges> {
  const { tenantId, from, base } = query;
  let unknown: unknown;
  for (const target of query.target) {
    for (const meant of base ?? [undefined]) {
      try {
        const common = { tenantId, target, from, signal, waits: true };
        return await (meant ? changes.delta({ ...common, base: meant }) : changes.allocated(common));
      } catch (error) {
        if (!isStorageError(error) || error.kind !== 'not_found') throw error;
        unknown ??= error;
      }
    }
  }
  throw unknown;
}

const MAX_EXACT = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * `text` is a whole number in decimal, of any sign and size. No volume reaches 2^53, so what is beyond is left to the
 * domain to refuse, as it is: whether the snapshot exists is said first.
 */
export function offsetOf(field: string, text: string): Offset {
  const offset = BigInt(text);
  if (offset < 0n) throw new StorageError('out_of_range', `${field}: must not be negative`, { field });
  return offset > MAX_EXACT ? offset : Number(offset);
}

export function limitOf(field: string, maxResults: number): number {
  if (maxResults < 0) throw invalid(field, 'must not be negative');
  return rangesPerMessage(maxResults);
}

export function required(fields: Record<string, string>): void {
  for (const [field, value] of Object.entries(fields)) if (value === '') throw invalid(field, 'required, but empty');
}

/** Throws BadToken before anything else is looked at; a token that is missing is a field like others. */
export async function sessionOf(sessions: Pick<SnapshotSessions, 'authenticate'>, field: string, token: string) {
  required({ [field]: token });
  const session = await sessions.authenticate(token);
  if (!session) throw new BadToken();
  return session;
}

const MAX_SHOWN = 100;

/**
 * Whose token is good may be told that it is not the token: what a session covers its holder knows. Whether there is such
 * a snapshot elsewhere is not said.
 */
export const uncovered = (text: string): string =>
  `the session is valid, but does not cover a snapshot ${text.slice(0, MAX_SHOWN)}`;

/** An id first, then a name. Throws `not_found` for what the session does not cover. */
export function coveredKey(session: SnapshotSession, text: string): SnapshotKey {
  const id = session.resolve({ id: text }) ?? session.resolve({ name: text });
  if (id === undefined) throw new StorageError('not_found', uncovered(text));
  return { id };
}
