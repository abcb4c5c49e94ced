/** What calls do to a fake store whose keys are issued, and whose rights are policies of its users. */
import type { Grant } from '#backends/object-backend';
import { type EffectOutcome, outcome } from '#test/fakes/object/fake-outcome';
import { changed } from '#test/fakes/object/fake-rights';
import type { FakeState } from '#test/fakes/object/fake-state';

export type IamEffect =
  /** `trusts`: who comes in as it without a key, as JSON. */
  | {
      type: 'putUser';
      uid: string;
      owner: string;
      displayName: string;
      keys: readonly string[];
      trusts: string | null;
    }
  | { type: 'issueKey'; uid: string; accessKeyId: string; secretAccessKey: string }
  | { type: 'removeKeys'; uid: string }
  | { type: 'removeUser'; uid: string }
  | { type: 'putRights'; bucket: string; policy: string; whose: readonly string[]; grants: readonly Grant[] };

export function applyIamEffect(state: FakeState, effect: IamEffect): EffectOutcome {
  if (effect.type === 'putRights') return putRights(state, effect);
  const result = applyToUser(state, effect);
  if (result !== 'unchanged') changed(state, effect.uid);
  return result;
}

function applyToUser(state: FakeState, effect: Exclude<IamEffect, { type: 'putRights' }>): EffectOutcome {
  const { uid } = effect;
  switch (effect.type) {
    case 'putUser': {
      const { displayName, keys, trusts, owner } = effect;
      const made =
        'INSERT INTO principals (uid, display_name, trusts, owner) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING';
      if (state.run(made, uid, displayName, trusts, owner) > 0) return 'created';
      const others = 'DELETE FROM keys WHERE uid = ?1 AND access_key_id NOT IN (SELECT value FROM json_each(?2))';
      const taken = keys.includes('') ? 0 : state.run(others, uid, JSON.stringify(keys));
      const put = 'UPDATE principals SET trusts = ?2 WHERE uid = ?1 AND trusts IS NOT ?2';
      return outcome('changed', taken + state.run(put, uid, trusts));
    }
    case 'issueKey': {
      const issued = 'INSERT INTO keys (access_key_id, uid, secret) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';
      return outcome('changed', state.run(issued, effect.accessKeyId, uid, effect.secretAccessKey));
    }
    case 'removeKeys':
      return outcome('deleted', state.run('DELETE FROM keys WHERE uid = ?', uid));
    case 'removeUser':
      state.run('DELETE FROM keys WHERE uid = ?', uid);
      state.run('DELETE FROM grants WHERE uid = ?', uid);
      return outcome('deleted', state.run('DELETE FROM principals WHERE uid = ?', uid));
  }
}

function putRights(
  state: FakeState,
  { bucket, policy, whose, grants }: Extract<IamEffect, { type: 'putRights' }>,
): EffectOutcome {
  let result: EffectOutcome = 'unchanged';
  for (const uid of whose) {
    const mode = grants.find(grant => grant.uid === uid)?.mode;
    const rows =
      mode === undefined
        ? state.run('DELETE FROM grants WHERE uid = ? AND policy = ?', uid, policy)
        : state.run(
            `INSERT INTO grants (bucket, uid, mode, policy) SELECT ?1, uid, ?3, ?4 FROM principals WHERE uid = ?2
             ON CONFLICT (bucket, uid, policy) DO UPDATE SET mode = ?3 WHERE mode <> ?3`,
            bucket,
            uid,
            mode,
            policy,
          );
    if (rows === 0) continue;
    changed(state, uid);
    result = 'changed';
  }
  return result;
}
