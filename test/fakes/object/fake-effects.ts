/**
 * What a call does to the fake store, as data: so an effect can be kept back and delivered long after its caller was
 * told `timeout`, like a request that hung in a network. An effect checks nothing but what a store itself checks; in
 * particular it does not know of incarnations, just as S3's DeleteBucket does not.
 */

import type { BucketSpec, Grant, IssuedKey, Principal } from '#backends/object-backend';
import { applyIamEffect, type IamEffect } from '#test/fakes/object/fake-iam-effects';
import { type EffectOutcome, outcome } from '#test/fakes/object/fake-outcome';
import { changed } from '#test/fakes/object/fake-rights';
import type { FakeState } from '#test/fakes/object/fake-state';

export type FakeEffect =
  | { type: 'none' }
  | { type: 'createBucket'; name: string; owner: string }
  | { type: 'configureBucket'; name: string; appliance: string; incarnation: string; spec: BucketSpec }
  | { type: 'emptyBucket'; name: string; portion: number }
  | { type: 'deleteBucket'; name: string }
  | { type: 'putPrincipal'; principal: Principal }
  | { type: 'removeKey'; uid: string; accessKeyId: string }
  | { type: 'removePrincipal'; uid: string }
  | { type: 'limitTenant'; owner: string; bytes: string | null }
  | { type: 'putGrants'; name: string; grants: readonly Grant[] }
  /** Of a store that signs: `uid` is a name. */
  | { type: 'putNames'; name: string; grants: readonly Grant[] }
  | IamEffect;

/** Call it inside a write transaction. */
export function applyEffect(state: FakeState, effect: FakeEffect): EffectOutcome {
  switch (effect.type) {
    case 'none':
      return 'unchanged';
    case 'createBucket':
      return outcome(
        'created',
        state.run('INSERT INTO buckets (name, owner) VALUES (?, ?) ON CONFLICT DO NOTHING', effect.name, effect.owner),
      );
    case 'configureBucket': {
      const spec = JSON.stringify(effect.spec);
      return outcome(
        'changed',
        state.run(
          `UPDATE buckets SET appliance = ?1, incarnation = ?2, spec = ?3, configured = 1 WHERE name = ?4
         AND (appliance IS NOT ?1 OR incarnation IS NOT ?2 OR spec IS NOT ?3 OR configured = 0)`,
          effect.appliance,
          effect.incarnation,
          spec,
          effect.name,
        ),
      );
    }
    case 'emptyBucket':
      return outcome(
        'changed',
        state.run(
          'UPDATE buckets SET objects = max(0, objects - ?) WHERE name = ? AND objects > 0 AND locked_key IS NULL',
          effect.portion,
          effect.name,
        ),
      );
    case 'deleteBucket': {
      const deleted = state.run('DELETE FROM buckets WHERE name = ? AND objects = 0', effect.name);
      if (deleted > 0) state.run("DELETE FROM grants WHERE bucket = ? AND policy = ''", effect.name);
      return outcome('deleted', deleted);
    }
    case 'putPrincipal':
      return putPrincipal(state, effect.principal);
    case 'removeKey':
      return outcome(
        'deleted',
        state.run('DELETE FROM keys WHERE access_key_id = ? AND uid = ?', effect.accessKeyId, effect.uid),
      );
    case 'removePrincipal':
      state.run('DELETE FROM keys WHERE uid = ?', effect.uid);
      return outcome('deleted', state.run('DELETE FROM principals WHERE uid = ?', effect.uid));
    case 'limitTenant':
      return outcome(
        'changed',
        effect.bytes === null
          ? state.run('DELETE FROM limits WHERE owner = ?', effect.owner)
          : state.run(
              `INSERT INTO limits (owner, bytes) VALUES (?1, ?2)
               ON CONFLICT (owner) DO UPDATE SET bytes = ?2 WHERE bytes <> ?2`,
              effect.owner,
              effect.bytes,
            ),
      );
    case 'putGrants':
      return putGrants(state, effect.name, effect.grants);
    case 'putNames':
      return putNames(state, effect.name, effect.grants);
    default:
      return applyIamEffect(state, effect);
  }
}

export const givenKeys = (principal: Principal): readonly IssuedKey[] => [principal, ...(principal.beside ?? [])];

function putPrincipal(state: FakeState, principal: Principal): EffectOutcome {
  const created = state.run(
    'INSERT INTO principals (uid, display_name) VALUES (?, ?) ON CONFLICT DO NOTHING',
    principal.uid,
    principal.displayName,
  );
  const keys = givenKeys(principal);
  const ids = JSON.stringify(keys.map(({ accessKeyId }) => accessKeyId));
  let changed =
    state.run(
      'UPDATE principals SET display_name = ?1 WHERE uid = ?2 AND display_name <> ?1',
      principal.displayName,
      principal.uid,
    ) +
    state.run(
      'DELETE FROM keys WHERE uid = ? AND access_key_id NOT IN (SELECT value FROM json_each(?))',
      principal.uid,
      ids,
    );
  for (const { accessKeyId, secretAccessKey } of keys)
    changed += state.run(
      `INSERT INTO keys (access_key_id, uid, secret) VALUES (?1, ?2, ?3)
       ON CONFLICT (access_key_id) DO UPDATE SET secret = ?3 WHERE uid = ?2 AND secret <> ?3`,
      accessKeyId,
      principal.uid,
      secretAccessKey,
    );
  if (created > 0) return 'created';
  return outcome('changed', changed);
}

function putGrants(state: FakeState, bucket: string, grants: readonly Grant[]): EffectOutcome {
  if (!state.get('SELECT 1 FROM buckets WHERE name = ?', bucket)) return 'unchanged';
  const before = state.all<Grant>('SELECT uid, mode FROM grants WHERE bucket = ?', bucket);
  const wanted = new Map(grants.map(grant => [grant.uid, grant.mode]));
  if (before.length === wanted.size && before.every(grant => wanted.get(grant.uid) === grant.mode)) return 'unchanged';
  state.run('DELETE FROM grants WHERE bucket = ?', bucket);
  for (const [uid, mode] of wanted)
    state.run('INSERT INTO grants (bucket, uid, mode) VALUES (?, ?, ?)', bucket, uid, mode);
  return 'changed';
}

function putNames(state: FakeState, bucket: string, grants: readonly Grant[]): EffectOutcome {
  const there = () =>
    new Map(state.all<Grant>('SELECT uid, mode FROM grants WHERE bucket = ?', bucket).map(one => [one.uid, one.mode]));
  const before = there();
  const result = putGrants(state, bucket, grants);
  const after = there();
  for (const name of new Set([...before.keys(), ...after.keys()]))
    if (before.get(name) !== after.get(name)) changed(state, name);
  return result;
}
