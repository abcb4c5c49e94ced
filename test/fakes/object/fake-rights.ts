/**
 * What a fake store that sees changes of keys and rights late goes by. A change at a user comes into force with some later look
 * at that user: counted, so that nothing depends on time.
 */
import type { Right } from '#backends/object-backend';
import type { FakeState } from '#test/fakes/object/fake-state';

const lateness = (state: FakeState): number => state.get<{ looks: number }>('SELECT looks FROM lateness')?.looks ?? 0;

/** Of changes from now on. */
export function setLateness(state: FakeState, looks: number): void {
  state.run('DELETE FROM lateness');
  state.run('INSERT INTO lateness (looks) VALUES (?)', looks);
}

/** Call it after each change at a user. */
export function changed(state: FakeState, uid: string): void {
  const looks = lateness(state);
  state.run('INSERT INTO unseen (uid, looks) VALUES (?1, ?2) ON CONFLICT (uid) DO UPDATE SET looks = ?2', uid, looks);
  if (looks === 0) see(state, uid);
}

/** One look, as the holder of a key. */
export function look(state: FakeState, accessKeyId: string): void {
  const owner = state.get<{ uid: string }>(
    'SELECT uid FROM keys WHERE access_key_id = ?1 UNION SELECT uid FROM seen_keys WHERE access_key_id = ?1',
    accessKeyId,
  );
  if (owner) lookAt(state, owner.uid);
}

/** The same, at a user, or a name that signatures stand under. */
export function lookAt(state: FakeState, uid: string): void {
  state.run('UPDATE unseen SET looks = looks - 1 WHERE uid = ?', uid);
  if (state.get('SELECT uid FROM unseen WHERE uid = ? AND looks <= 0', uid)) see(state, uid);
}

/** What a name lets its holder do at the bucket now. */
export const modesSeen = (state: FakeState, uid: string, bucket: string): Right['mode'][] =>
  state
    .all<{ mode: Right['mode'] }>('SELECT mode FROM seen_rights WHERE uid = ? AND bucket = ?', uid, bucket)
    .map(({ mode }) => mode);

/** All changes. */
export function seeAll(state: FakeState): void {
  for (const { uid } of state.all<{ uid: string }>('SELECT uid FROM unseen')) see(state, uid);
}

function see(state: FakeState, uid: string): void {
  state.run('DELETE FROM unseen WHERE uid = ?', uid);
  state.run('DELETE FROM seen_keys WHERE uid = ?', uid);
  state.run('DELETE FROM seen_rights WHERE uid = ?', uid);
  state.run('INSERT INTO seen_keys (access_key_id, uid) SELECT access_key_id, uid FROM keys WHERE uid = ?', uid);
  state.run('INSERT INTO seen_rights (uid, bucket, mode) SELECT uid, bucket, mode FROM grants WHERE uid = ?', uid);
}

export const isKnown = (state: FakeState, accessKeyId: string): boolean =>
  state.get('SELECT uid FROM seen_keys WHERE access_key_id = ?', accessKeyId) !== undefined;

/** What the key lets its holder do at the bucket now; a Deny wins. */
export function modesInForce(state: FakeState, accessKeyId: string, bucket: string): Right['mode'][] {
  const modes = state
    .all<{ mode: Right['mode'] }>(
      `SELECT r.mode FROM seen_rights r JOIN seen_keys k ON k.uid = r.uid
        WHERE k.access_key_id = ? AND r.bucket = ? ORDER BY r.mode`,
      accessKeyId,
      bucket,
    )
    .map(({ mode }) => mode);
  return modes.includes('revoked') ? [] : modes;
}
