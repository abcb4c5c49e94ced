/** Principals of an object store, with keys that are given, issued, or replaced by signatures. */
import { describe, expect, it } from 'vitest';
import { failsWith, none, type ObjectWorld, plain } from '#backends/conformance/object-world';
import type { Grant, Principal } from '#backends/object-backend';

const inHours = (hours: number) => new Date(Math.floor(Date.now() / 1_000) * 1_000 + hours * 3_600_000).toISOString();
const [IN_AN_HOUR, AN_HOUR_AGO] = [inHours(1), inHours(-1)];

export function describePrincipals(world: ObjectWorld): void {
  const { traits, newPrincipal, make, remove } = world;
  const signed = (bucket: string, name: string) => ({
    accessKeyId: '',
    secretAccessKey: '',
    token: world.backend.signAccess(bucket, name)!,
  });
  describe.runIf(traits.signs)('signatures', () => {
    it('signs the same each time, and another for each bucket and principal', async () => {
      const [a, b] = [newPrincipal(), newPrincipal()];
      const token = world.backend.signAccess('photos', a.uid);
      expect(token).toEqual(expect.any(String));
      expect(world.backend.signAccess('photos', a.uid)).toBe(token);
      expect(world.backend.signAccess('films', a.uid)).not.toBe(token);
      expect(world.backend.signAccess('photos', b.uid)).not.toBe(token);
      expect(await world.backend.holdsPrincipal({ ...a, token }, none())).toBe(true);
      expect(await world.backend.holdsPrincipal({ ...b, token }, none())).toBe(false);
      expect(await world.backend.holdsPrincipal(a, none())).toBe(false);
    });

    it('lets in under each name that stands, as its mode says, and under none that does not', async () => {
      const ref = await make();
      const { uid } = newPrincipal();
      const names = [uid, `${uid}-2`];
      const keys = names.map(name => signed(ref.name, name));
      const isLetIn = (mode: Grant['mode']) =>
        Promise.all(keys.map(key => world.backend.isInForce(key, [{ bucket: ref.name, mode }], none())));
      const put = (mode: Grant['mode'], ...signedAs: string[]) =>
        world.backend.putGrants(ref, [{ uid, mode, signedAs }], none(), [uid]);
      expect(await isLetIn('read_only')).toEqual([false, false]);
      expect(await isLetIn('revoked')).toEqual([true, true]);
      for (const mode of ['read_write', 'read_only', 'write_only'] as const) {
        await put(mode, ...names);
        for (const asked of ['read_write', 'read_only', 'write_only', 'revoked'] as const)
          expect(await isLetIn(asked), `${asked} at ${mode}`).toEqual([asked === mode, asked === mode]);
      }
      await put('read_only', names[1]!);
      expect(await isLetIn('read_only')).toEqual([false, true]);
      expect(await world.backend.holdsGrants(ref, [{ uid, mode: 'read_only', signedAs: [names[1]!] }], none())).toBe(
        true,
      );
      expect(await world.backend.holdsGrants(ref, [{ uid, mode: 'read_only' }], none())).toBe(false);
      for (const key of keys)
        expect(await world.backend.isInForce(key, 'no key', none())).toBe(key.token === keys[0]!.token);
      await remove(ref);
      expect(await isLetIn('revoked')).toEqual([true, true]);
      for (const key of keys) expect(await world.backend.isInForce(key, 'no key', none())).toBe(true);
    });

    it('lets in until the end of a name, which may be moved, and tells one end from another', async () => {
      const ref = await make();
      const { uid } = newPrincipal();
      const key = signed(ref.name, uid);
      const put = (endsAt?: string) =>
        world.backend.putGrants(ref, [{ uid, mode: 'read_only', endsAt }], none(), [uid]);
      const isLetIn = () => world.backend.isInForce(key, [{ bucket: ref.name, mode: 'read_only' }], none());
      await put(AN_HOUR_AGO);
      expect(await isLetIn()).toBe(false);
      for (const endsAt of [IN_AN_HOUR, undefined]) {
        await put(endsAt);
        expect(await isLetIn()).toBe(true);
        const holds = (end?: string) =>
          world.backend.holdsGrants(ref, [{ uid, mode: 'read_only', endsAt: end }], none());
        expect([await holds(IN_AN_HOUR), await holds()]).toEqual([endsAt === IN_AN_HOUR, endsAt === undefined]);
      }
      await remove(ref);
    });
  });

  describe.runIf(traits.issuesKeys)('issued keys', () => {
    it('makes the principal, and one key at a time, whatever was there', async () => {
      const { uid } = newPrincipal();
      const principal = (accessKeyId: string) => ({ uid, accessKeyId, secretAccessKey: '', displayName: 'issued' });
      await failsWith(world.backend.issueKey(uid, none()), 'not_found');
      await world.backend.putPrincipal(principal(''), none());
      await world.backend.putPrincipal(principal(''), none());
      const first = await world.backend.issueKey(uid, none());
      expect(await world.backend.holdsPrincipal(principal(first.accessKeyId), none())).toBe(true);
      // Its secret was lost with a worker.
      const second = await world.backend.issueKey(uid, none());
      expect(second.secretAccessKey).not.toBe(first.secretAccessKey);
      expect((await world.harness.principalKeys(uid))?.map(({ accessKeyId }) => accessKeyId)).toEqual([
        second.accessKeyId,
      ]);
      expect(await world.backend.holdsPrincipal(principal(first.accessKeyId), none())).toBe(false);
      await world.backend.removeKey(principal(''), none());
      await world.backend.removeKey(principal(''), none());
      expect(await world.harness.principalKeys(uid)).toEqual([]);
      await world.backend.removePrincipal(uid, none());
      await world.backend.removePrincipal(uid, none());
      expect(await world.harness.principalKeys(uid)).toBeUndefined();
    });

    it('says as the holder whether rights and key are in force', async () => {
      const ref = await make();
      const { uid, ...rest } = newPrincipal();
      await world.backend.putPrincipal({ uid, ...rest }, none());
      const key = await world.backend.issueKey(uid, none());
      const right = (mode: Grant['mode']) => [{ bucket: ref.name, mode }];
      expect(await world.backend.isInForce(key, right('read_write'), none())).toBe(false);
      for (const mode of ['read_write', 'read_only', 'write_only', 'revoked'] as const) {
        await world.backend.putGrants(ref, [{ uid, mode }], none(), [uid]);
        expect(await world.backend.isInForce(key, right(mode), none()), mode).toBe(true);
        expect(await world.backend.isInForce(key, right('revoked'), none()), mode).toBe(mode === 'revoked');
      }
      expect(await world.backend.isInForce(key, right('write_only'), none())).toBe(false);
      expect(await world.backend.isInForce(key, [], none())).toBe(true);
      expect(await world.backend.isInForce(key, 'no key', none())).toBe(false);
      await world.backend.putGrants(ref, [], none(), [uid]);
      expect(await world.backend.isInForce(key, right('revoked'), none())).toBe(true);
      await world.backend.putGrants(ref, [{ uid, mode: 'read_write' }], none(), [uid]);
      await remove(ref);
      expect(await world.backend.isInForce(key, right('revoked'), none())).toBe(true);
      await failsWith(world.backend.isInForce(key, right('read_write'), none()), 'not_found');
      await world.backend.removeKey({ uid, accessKeyId: '' }, none());
      expect(await world.backend.isInForce(key, 'no key', none())).toBe(true);
      expect(await world.backend.isInForce(key, right('revoked'), none())).toBe(true);
    });

    it('takes away what other keys a principal has when its own is given', async () => {
      const principal = newPrincipal();
      await world.backend.putPrincipal({ ...principal, accessKeyId: '' }, none());
      const { accessKeyId } = await world.backend.issueKey(principal.uid, none());
      await world.harness.seedKey!(principal.uid);
      const own = { ...principal, accessKeyId };
      expect(await world.backend.holdsPrincipal(own, none())).toBe(false);
      await world.backend.putPrincipal(own, none());
      expect(await world.backend.holdsPrincipal(own, none())).toBe(true);
    });

    it('issues another key beside one that stays, and takes away what is given no more', async () => {
      const principal = { ...newPrincipal(), accessKeyId: '' };
      const { uid } = principal;
      const ids = async () => (await world.harness.principalKeys(uid))?.map(({ accessKeyId }) => accessKeyId).sort();
      await world.backend.putPrincipal(principal, none());
      const first = await world.backend.issueKey(uid, none());
      await world.backend.issueKey(uid, none(), first.accessKeyId);
      // The one in between was lost with a worker: there is room for two.
      const second = await world.backend.issueKey(uid, none(), first.accessKeyId);
      const both = { ...principal, ...second, beside: [first] };
      expect(await ids()).toEqual([first.accessKeyId, second.accessKeyId].sort());
      await world.backend.putPrincipal(both, none());
      expect(await ids()).toEqual([first.accessKeyId, second.accessKeyId].sort());
      expect(await world.backend.holdsPrincipal(both, none())).toBe(true);
      expect(await world.backend.holdsPrincipal({ ...principal, ...second }, none())).toBe(false);
      await world.backend.putPrincipal({ ...principal, ...second }, none());
      expect(await ids()).toEqual([second.accessKeyId]);
      expect(await world.backend.holdsPrincipal(both, none())).toBe(true);
      expect(await world.backend.holdsPrincipal({ ...both, ...first, beside: [second] }, none())).toBe(false);
    });

    it.skipIf(traits.rightsAtBuckets)(
      'denies and takes away at a bucket that lost its tags, or is gone, and touches nobody else',
      async () => {
        const ref = await make();
        const [a, b] = [newPrincipal(), newPrincipal()];
        for (const principal of [a, b]) await world.backend.putPrincipal(principal, none());
        const both: Grant[] = [a, b].map(({ uid }) => ({ uid, mode: 'read_write' }));
        await world.backend.putGrants(ref, both, none(), [a.uid, b.uid]);
        await world.harness.dropTags(ref.name);
        await world.backend.putGrants(ref, [], none(), [a.uid]);
        expect(await world.harness.grants(ref.name)).toEqual([both[1]]);
        await world.backend.configureBucket(ref, plain(), none());
        await remove(ref);
        const denied: Grant[] = [{ uid: b.uid, mode: 'revoked' }];
        await world.backend.putGrants(ref, denied, none(), [b.uid]);
        expect(await world.harness.grants(ref.name)).toEqual(denied);
        expect(await world.backend.holdsGrants(ref, denied, none(), [b.uid])).toBe(true);
        await world.backend.putGrants(ref, [], none(), [b.uid]);
        expect(await world.harness.grants(ref.name)).toEqual([]);
      },
    );
  });

  describe.skipIf(traits.signs || traits.issuesKeys)('principals', () => {
    it('makes the principal and its key exactly as given, and repeats', async () => {
      const principal = newPrincipal();
      const { accessKeyId, secretAccessKey } = principal;
      await world.backend.putPrincipal(principal, none());
      await world.backend.putPrincipal(principal, none());
      expect(await world.harness.principalKeys(principal.uid)).toEqual([{ accessKeyId, secretAccessKey }]);
    });

    it('says whether it holds the principal as given', async () => {
      const principal = newPrincipal();
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
      await world.backend.putPrincipal(principal, none());
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(true);
      expect(await world.backend.holdsPrincipal({ ...principal, secretAccessKey: 'another-secret-0123' }, none())).toBe(
        false,
      );
      await world.backend.removeKey(principal, none());
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
    });

    it('leaves exactly one key when another one is given', async () => {
      const principal = newPrincipal();
      await world.backend.putPrincipal(principal, none());
      const next = { ...newPrincipal(), uid: principal.uid };
      await world.backend.putPrincipal(next, none());
      expect(await world.harness.principalKeys(principal.uid)).toEqual([
        { accessKeyId: next.accessKeyId, secretAccessKey: next.secretAccessKey },
      ]);
    });

    it('has a key beside it for as long as that is given', async () => {
      const [principal, other] = [newPrincipal(), newPrincipal()];
      const plainKey = ({ accessKeyId, secretAccessKey }: Principal) => ({ accessKeyId, secretAccessKey });
      const both = { ...principal, beside: [plainKey(other)] };
      await world.backend.putPrincipal(principal, none());
      expect(await world.backend.holdsPrincipal(both, none())).toBe(false);
      for (let n = 0; n < 2; n++) await world.backend.putPrincipal(both, none());
      const keys = (await world.harness.principalKeys(principal.uid)) ?? [];
      expect(keys).toHaveLength(2);
      expect(keys).toEqual(expect.arrayContaining([plainKey(principal), plainKey(other)]));
      expect(await world.backend.holdsPrincipal(both, none())).toBe(true);
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
      await world.backend.putPrincipal({ ...principal, ...plainKey(other) }, none());
      expect(await world.harness.principalKeys(principal.uid)).toEqual([plainKey(other)]);
    });

    it.runIf(traits.plainKeys)(
      'says that a secret cannot be put right, and that a key does not come back',
      async () => {
        const principal = newPrincipal();
        const other = { ...principal, secretAccessKey: newPrincipal().secretAccessKey };
        await world.backend.putPrincipal(other, none());
        await failsWith(world.backend.putPrincipal(principal, none()), 'failed_precondition');
        expect((await world.harness.principalKeys(principal.uid))?.[0]).toMatchObject({
          secretAccessKey: other.secretAccessKey,
        });
        await world.backend.removeKey(principal, none());
        await failsWith(world.backend.putPrincipal(principal, none()), 'failed_precondition');
        const { accessKeyId, secretAccessKey } = newPrincipal();
        const next = { ...principal, accessKeyId, secretAccessKey, beside: [principal] };
        await world.backend.putPrincipal(next, none());
        expect(await world.harness.principalKeys(principal.uid)).toEqual([{ accessKeyId, secretAccessKey }]);
      },
    );

    it.skipIf(traits.plainKeys)('puts a secret right that differs at the store', async () => {
      const principal = newPrincipal();
      await world.backend.putPrincipal({ ...principal, secretAccessKey: 'another-secret-0123456789' }, none());
      await world.backend.putPrincipal(principal, none());
      expect(await world.harness.principalKeys(principal.uid)).toEqual([
        { accessKeyId: principal.accessKeyId, secretAccessKey: principal.secretAccessKey },
      ]);
    });

    it('does not take a key id away from another principal', async () => {
      const one = newPrincipal();
      const two = { ...newPrincipal(), accessKeyId: one.accessKeyId };
      await world.backend.putPrincipal(one, none());
      await failsWith(world.backend.putPrincipal(two, none()), 'already_exists');
      expect(await world.harness.principalKeys(one.uid)).toEqual([
        { accessKeyId: one.accessKeyId, secretAccessKey: one.secretAccessKey },
      ]);
    });

    it('takes key and principal away, each any number of times', async () => {
      const principal = newPrincipal();
      await world.backend.removeKey(principal, none());
      await world.backend.removePrincipal(principal.uid, none());
      await world.backend.putPrincipal(principal, none());
      await world.backend.removeKey(principal, none());
      await world.backend.removeKey(principal, none());
      expect(await world.harness.principalKeys(principal.uid)).toEqual(traits.plainKeys ? undefined : []);
      await world.backend.removePrincipal(principal.uid, none());
      await world.backend.removePrincipal(principal.uid, none());
      expect(await world.harness.principalKeys(principal.uid)).toBeUndefined();
    });
  });
}
