import type { CoveredKey, CoveredSnapshot, SnapshotSession } from '#storage/block/sessions/snapshot-session';

export type SessionFacts = Omit<SnapshotSession, 'resolve' | 'covers'>;

/** A session over what it covers. */
export function coveringSession(facts: SessionFacts): SnapshotSession {
  const ids = new Set(facts.snapshots.map(({ id }) => id));
  const byName = new Map<string, CoveredSnapshot[]>();
  for (const snapshot of facts.snapshots) {
    const same = byName.get(snapshot.name) ?? [];
    if (!same.some(({ id }) => id === snapshot.id)) same.push(snapshot);
    byName.set(snapshot.name, same);
  }
  const resolve = (key: CoveredKey): string | undefined => {
    if ('id' in key) return ids.has(key.id) ? key.id : undefined;
    const named = byName.get(key.name) ?? [];
    const meant = 'volumeId' in key ? named.filter(({ volumeId }) => volumeId === key.volumeId) : named;
    return meant.length === 1 ? meant[0]!.id : undefined;
  };
  return { ...facts, resolve, covers: key => resolve(key) !== undefined };
}
