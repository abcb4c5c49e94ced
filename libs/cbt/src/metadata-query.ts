import { BadToken } from '#cbt/cbt-errors';
import { rangesPerMessage } from '#cbt/range-encoder';
import type { ChangedBlocks, ChangedRanges, SnapshotKey } from '#changes/changed-blocks';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import type { SnapshotSession, SnapshotSessions } from '#storage/sessions/snapshot-session';

/** What every face makes of its request. */
export interface MetadataQuery {
  tenantId: string;
  /** What the caller may have meant, the likeliest first. */
  target: readonly SnapshotKey[];
  /** Present: a delta. */
  base?: readonly SnapshotKey[];
  from: number;
  perMessage: number;
}

/** The ranges of the first meaning that names something. */
export async function ask(changes: ChangedBlocks, query: MetadataQuery, signal: AbortSignal): Promise<ChangedRanges> {
  const { tenantId, from, base } = query;
  let unknown: unknown;
  for (const target of query.target) {
    for (const meant of base ?? [undefined]) {
      try {
        const common = { tenantId, target, from, signal };
        return await (meant ? changes.delta({ ...common, base: meant }) : changes.allocated(common));
      } catch (error) {
        if (!isStorageError(error) || error.kind !== 'not_found') throw error;
        unknown ??= error;
      }
    }
  }
  throw unknown;
}

const MAX_OFFSET = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * `text` is a whole number in decimal, of any sign and size. No volume reaches 2^53, so what is beyond is left to the
 * domain as the largest number: whether the snapshot exists is said first.
 */
export function offsetOf(field: string, text: string): number {
  const offset = BigInt(text);
  if (offset < 0n) throw new StorageError('out_of_range', `${field}: must not be negative`, { field });
  return Number(offset > MAX_OFFSET ? MAX_OFFSET : offset);
}

export function limitOf(field: string, maxResults: number): number {
  if (maxResults < 0) throw invalid(field, 'must not be negative');
  return rangesPerMessage(maxResults);
}

export function required(fields: Record<string, string>): void {
  for (const [field, value] of Object.entries(fields)) if (value === '') throw invalid(field, 'required, but empty');
}

/** Throws BadToken, before anything else is looked at. */
export async function sessionOf(sessions: Pick<SnapshotSessions, 'authenticate'>, token: string) {
  const session = token === '' ? undefined : await sessions.authenticate(token);
  if (!session) throw new BadToken();
  return session;
}

/** An id first, then a name. What the session does not cover is a matter of the token. */
export function coveredKey(session: SnapshotSession, text: string): SnapshotKey {
  const id = session.resolve({ id: text }) ?? session.resolve({ name: text });
  if (id === undefined) throw new BadToken();
  return { id };
}
