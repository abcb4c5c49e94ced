/** The fake store with the traits of S3 with IAM: keys are issued, rights belong to users, and changes are seen late. */
import { randomBytes } from 'node:crypto';
import {
  type BucketInspection,
  type Expected,
  type Grant,
  type GrantTarget,
  type IssuedKey,
  MissingPrincipal,
  type Principal,
  type PrincipalRef,
  type Right,
  type StoreTraits,
} from '#backends/object-backend';
import { partedRights } from '#backends/s3/user-rights';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';
import { givenKeys } from '#test/fakes/object/fake-effects';
import { answer, done, FakeObjectBackend, missing } from '#test/fakes/object/fake-object-backend';
import { isKnown, look, modesInForce } from '#test/fakes/object/fake-rights';

export const FAKE_IAM_TRAITS: StoreTraits = {
  issuesKeys: true,
  rightsOfPrincipals: true,
  late: true,
  keylessLateMs: 1_000,
};

/** As it is kept: who comes in without a key. */
function trustOf({ trusts }: Principal): string | null {
  if (!trusts) return null;
  const { namespace, name } = trusts;
  return JSON.stringify({ namespace, name });
}

const policyOf = ({ name, incarnation }: GrantTarget): string => incarnation ?? `name ${name}`;

export class FakeIamBackend extends FakeObjectBackend {
  override traits(): StoreTraits {
    return FAKE_IAM_TRAITS;
  }

  override putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    const { uid, displayName } = principal;
    const trusts = trustOf(principal);
    const keys = trusts === null ? givenKeys(principal).map(({ accessKeyId }) => accessKeyId) : [];
    const plan = () => {
      const found = this.#find(uid);
      if (found && found.owner !== this.owner)
        throw new StorageError('already_exists', `principal ${uid} was not made by this appliance`);
      return done({ type: 'putUser', uid, owner: this.owner, displayName, keys, trusts });
    };
    return this.call({ method: 'putPrincipal', resource: uid, signal, plan });
  }

  override holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    const { uid, accessKeyId } = principal;
    const given = givenKeys(principal).map(key => key.accessKeyId);
    const plan = () => {
      const keys = this.state.all<{ id: string }>('SELECT access_key_id AS id FROM keys WHERE uid = ?', uid);
      const trusts = trustOf(principal);
      if (trusts !== null) return answer(this.#find(uid)?.trusts === trusts && keys.length === 0);
      return answer(keys.some(({ id }) => id === accessKeyId) && keys.every(({ id }) => given.includes(id)));
    };
    return this.call({ method: 'holdsPrincipal', resource: uid, signal, plan });
  }

  override issueKey(uid: string, signal: LeaseSignal, staying = ''): Promise<IssuedKey> {
    const key = {
      accessKeyId: `FAKE${randomBytes(8).toString('hex').toUpperCase()}`,
      secretAccessKey: randomBytes(30).toString('base64url'),
    };
    const plan = () => {
      this.#require(uid);
      // A request of its own: only the one that makes the key may come late.
      this.state.run('DELETE FROM keys WHERE uid = ? AND access_key_id <> ?', uid, staying);
      return { effect: { type: 'issueKey' as const, uid, ...key }, result: key };
    };
    return this.call({ method: 'issueKey', resource: uid, signal, plan });
  }

  override isInForce({ accessKeyId }: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean> {
    const plan = () => {
      look(this.state, accessKeyId);
      if (expected === 'no key') return answer(!isKnown(this.state, accessKeyId));
      return answer(expected.every(right => this.#goesBy(accessKeyId, right)));
    };
    return this.call({ method: 'isInForce', resource: accessKeyId, signal, plan });
  }

  override removeKey({ uid }: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.call({ method: 'removeKey', resource: uid, signal, plan: () => done({ type: 'removeKeys', uid }) });
  }

  override removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    const plan = () => done({ type: 'removeUser', uid });
    return this.call({ method: 'removePrincipal', resource: uid, signal, plan });
  }

  override putGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
    whose: readonly string[] = grants.map(({ uid }) => uid),
  ): Promise<void> {
    return this.bucketCall('putGrants', bucket, signal, () => {
      const { denied, allowed } = partedRights(grants, whose);
      if (allowed.length > 0) this.#requireFor(bucket);
      for (const { uid } of [...denied, ...allowed]) this.#require(uid);
      return done({ type: 'putRights', bucket: bucket.name, policy: policyOf(bucket), whose, grants });
    });
  }

  override holdsGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: AbortSignal,
    whose: readonly string[] = grants.map(({ uid }) => uid),
  ): Promise<boolean> {
    return this.bucketCall('holdsGrants', bucket, signal, () => {
      if (partedRights(grants, whose).allowed.length > 0 && !this.#isThere(bucket)) return answer(false);
      const said = (uid: string) =>
        this.state.get<Grant>('SELECT mode FROM grants WHERE uid = ? AND policy = ?', uid, policyOf(bucket))?.mode;
      return answer(whose.every(uid => said(uid) === grants.find(grant => grant.uid === uid)?.mode));
    });
  }

  /** Nothing tells a bucket from a later one of its name. */
  protected override inspect(name: string): BucketInspection {
    const found = super.inspect(name);
    return 'identity' in found ? { ...found, identity: undefined } : found;
  }

  #goesBy(accessKeyId: string, { bucket, mode }: Right): boolean {
    const modes = modesInForce(this.state, accessKeyId, bucket);
    const isThere = this.inspect(bucket).state !== 'absent';
    if (mode === 'revoked') return modes.length === 0 || !isThere;
    if (!isThere) throw missing(bucket);
    const reads = modes.some(one => one !== 'write_only');
    const writes = modes.some(one => one !== 'read_only');
    return mode === 'write_only' ? writes : reads;
  }

  #isThere({ name, incarnation }: GrantTarget): boolean {
    const found = this.inspect(name);
    return incarnation === undefined ? found.state !== 'absent' : this.isThis(found, { name, incarnation });
  }

  #requireFor(bucket: GrantTarget): void {
    if (this.#isThere(bucket)) return;
    if (this.inspect(bucket.name).state === 'untagged')
      throw new StorageError('failed_precondition', `bucket ${bucket.name} has lost its tags`);
    throw missing(bucket.name);
  }

  #find(uid: string): { trusts: string | null; owner: string } | undefined {
    return this.state.get('SELECT trusts, owner FROM principals WHERE uid = ?', uid);
  }

  #require(uid: string): void {
    if (!this.#find(uid)) throw new MissingPrincipal(uid);
  }
}
