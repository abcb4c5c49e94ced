/** Principals without a key, as which service accounts of a cluster come in. */
import { describe, expect, it } from 'vitest';
import { failsWith, none, type ObjectWorld } from '#backends/conformance/object-world';
import type { Grant } from '#backends/object-backend';

const UPLOADER = { namespace: 'shop', name: 'uploader' };
const OTHERS = [
  { namespace: 'shop', name: 'another' },
  { namespace: 'another', name: 'uploader' },
];

export function describeAccounts(world: ObjectWorld): void {
  const { traits, newKeyless, newPrincipal, make, remove } = world;
  const trustOf = (uid: string) => world.harness.trustOf!(uid);
  const keysOf = async (uid: string) => (await world.harness.principalKeys(uid)) ?? [];

  describe.runIf(traits.serviceAccounts)('service accounts', () => {
    it('lets this one in and no other, without a key, however often', async () => {
      const principal = newKeyless(UPLOADER);
      const { uid } = principal;
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
      for (let n = 0; n < 2; n++) await world.backend.putPrincipal(principal, none());
      expect(await trustOf(uid)).toEqual(UPLOADER);
      expect(await keysOf(uid)).toEqual([]);
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(true);
      for (const trusts of OTHERS)
        expect(await world.backend.holdsPrincipal({ ...principal, trusts }, none())).toBe(false);
    });

    it('puts right whom somebody else let in', async () => {
      const principal = newKeyless(UPLOADER);
      await world.backend.putPrincipal(principal, none());
      for (const other of OTHERS) {
        await world.harness.seedTrust!(principal.uid, other);
        expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
        await world.backend.putPrincipal(principal, none());
        expect(await trustOf(principal.uid)).toEqual(UPLOADER);
        expect(await world.backend.holdsPrincipal(principal, none())).toBe(true);
      }
    });

    it('has no key that could be taken away, and loses nothing by it', async () => {
      const principal = newKeyless(UPLOADER);
      await world.backend.putPrincipal(principal, none());
      for (let n = 0; n < 2; n++) await world.backend.removeKey(principal, none());
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(true);
    });

    it('has rights beside those of keys, which are taken from it alone', async () => {
      const ref = await make();
      const [keyless, keyed] = [newKeyless(UPLOADER), { ...newPrincipal(), accessKeyId: '' }];
      for (const principal of [keyless, keyed]) await world.backend.putPrincipal(principal, none());
      const both: Grant[] = [
        { uid: keyed.uid, mode: 'read_write' },
        { uid: keyless.uid, mode: 'read_only' },
      ];
      const whose = both.map(({ uid }) => uid);
      for (let n = 0; n < 2; n++) await world.backend.putGrants(ref, both, none(), whose);
      expect(await world.backend.holdsGrants(ref, both, none(), whose)).toBe(true);
      const said = await world.harness.grants(ref.name);
      expect(said).toHaveLength(2);
      expect(said).toEqual(expect.arrayContaining(both));
      await world.backend.putGrants(ref, both.slice(0, 1), none(), [keyless.uid]);
      expect(await world.harness.grants(ref.name)).toEqual(both.slice(0, 1));
      await remove(ref);
    });

    it('goes with its rights, any number of times', async () => {
      const ref = await make();
      const principal = newKeyless(UPLOADER);
      const { uid } = principal;
      await world.backend.removePrincipal(uid, none());
      await world.backend.putPrincipal(principal, none());
      await world.backend.putGrants(ref, [{ uid, mode: 'read_write' }], none(), [uid]);
      if (traits.rightsAtBuckets) await world.backend.putGrants(ref, [], none(), [uid]);
      for (let n = 0; n < 2; n++) await world.backend.removePrincipal(uid, none());
      expect(await trustOf(uid)).toBeUndefined();
      expect(await world.backend.holdsPrincipal(principal, none())).toBe(false);
      // Who has the name next finds nothing there.
      await world.backend.putPrincipal(principal, none());
      expect(await world.harness.grants(ref.name)).toEqual([]);
      await remove(ref);
    });

    it('is not taken over from another tenant', async () => {
      const principal = newKeyless(UPLOADER);
      await world.backend.putPrincipal(principal, none());
      const theirs = { ...principal, trusts: OTHERS[0]! };
      await failsWith(world.harness.otherTenant.putPrincipal(theirs, none()), 'already_exists');
      expect(await trustOf(principal.uid)).toEqual(UPLOADER);
    });

    it('is not made where nobody vouches for them, and goes all the same', async () => {
      const { withKeysAlone } = world.harness;
      if (!withKeysAlone) return;
      const [principal, next] = [newKeyless(UPLOADER), newKeyless(UPLOADER)];
      await world.backend.putPrincipal(principal, none());
      await failsWith(withKeysAlone.putPrincipal(next, none()), 'failed_precondition');
      expect(await trustOf(next.uid)).toBeUndefined();
      expect(await withKeysAlone.holdsPrincipal(principal, none())).toBe(false);
      await withKeysAlone.removePrincipal(principal.uid, none());
      expect(await trustOf(principal.uid)).toBeUndefined();
    });
  });
}
