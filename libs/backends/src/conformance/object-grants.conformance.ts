/** What principals may do at buckets. */
import { describe, expect, it } from 'vitest';
import { failsWith, none, type ObjectWorld, plain, sorted } from '#backends/conformance/object-world';
import { type Grant, ReplacedBucket } from '#backends/object-backend';

export function describeGrants(world: ObjectWorld): void {
  const { traits, newRef, newPrincipal, make, remove, givenTo } = world;
  describe('grants', () => {
    it('says exactly what is given, however often and in whatever order', async () => {
      const ref = await make();
      const [a, b, c] = [newPrincipal(), newPrincipal(), newPrincipal()];
      for (const principal of [a, b, c]) await world.backend.putPrincipal(principal, none());
      const grants: Grant[] = [
        { uid: a.uid, mode: 'read_write' },
        { uid: b.uid, mode: traits.plainKeys ? 'read_only' : 'write_only' },
        { uid: c.uid, mode: 'revoked' },
      ];
      const all = [a.uid, b.uid, c.uid];
      await world.backend.putGrants(ref, grants, none(), all);
      await world.backend.putGrants(ref, grants.toReversed(), none(), all);
      // Who is revoked where everything is refused that is not allowed needs no word.
      const isWordless = traits.signs || traits.plainKeys || traits.rightsAtBuckets;
      const said = grants.filter(({ mode }) => !(isWordless && mode === 'revoked'));
      expect(sorted(await world.harness.grants(ref.name))).toEqual(sorted(said));
      expect(await world.backend.holdsGrants(ref, grants, none(), all)).toBe(true);
      expect(await world.backend.holdsGrants(ref, grants.slice(1), none(), all)).toBe(false);
      await world.backend.putGrants(ref, [{ uid: a.uid, mode: 'read_only' }], none(), all);
      expect(await world.harness.grants(ref.name)).toEqual([{ uid: a.uid, mode: 'read_only' }]);
      await world.backend.putGrants(ref, [], none(), all);
      await world.backend.putGrants(ref, [], none(), all);
      expect(await world.harness.grants(ref.name)).toEqual([]);
      await remove(ref);
    });

    it('is not_found for a missing bucket', async () => {
      for (const grants of givenTo()) {
        await failsWith(world.backend.putGrants(newRef(), grants, none()), 'not_found');
        await failsWith(world.backend.putGrants({ name: newRef().name }, grants, none()), 'not_found');
      }
      expect(await world.backend.holdsGrants(newRef(), [{ uid: newPrincipal().uid, mode: 'read_only' }], none())).toBe(
        false,
      );
    });

    it('does not take a bucket for gone that lost its tags', async () => {
      const ref = await make();
      await world.harness.dropTags(ref.name);
      for (const grants of givenTo())
        await failsWith(world.backend.putGrants(ref, grants, none()), 'failed_precondition');
      expect(await world.backend.deleteBucket(ref, none())).toBe('foreign');
      if (traits.marksAtOnce)
        return failsWith(world.backend.configureBucket(ref, plain(), none()), 'failed_precondition');
      await world.backend.configureBucket(ref, plain(), none());
      await world.backend.putGrants(ref, [], none());
      await remove(ref);
    });

    it('writes the grants of a registered bucket that somebody else made', async () => {
      const { name } = newRef();
      const principal = newPrincipal();
      await (world.harness.seedRegistrable ?? world.harness.seedForeignBucket)(name);
      await world.backend.putPrincipal(principal, none());
      await world.backend.putGrants({ name }, [{ uid: principal.uid, mode: 'read_only' }], none());
      expect(await world.harness.grants(name)).toEqual([{ uid: principal.uid, mode: 'read_only' }]);
      await world.backend.putGrants({ name }, [], none(), [principal.uid]);
      expect(await world.harness.grants(name)).toEqual([]);
    });

    it.skipIf(traits.namesAlone)('tells a registered bucket from another one that was given its name', async () => {
      const { name } = newRef();
      const identityNow = async () => {
        const found = await world.backend.inspectBucket(name, none());
        return 'identity' in found ? found.identity : undefined;
      };
      await world.harness.seedForeignBucket(name);
      const identity = await identityNow();
      const principal = newPrincipal();
      // Elsewhere it may not exist yet.
      if (traits.plainKeys || traits.rightsAtBuckets) await world.backend.putPrincipal(principal, none());
      const grants: Grant[] = [{ uid: principal.uid, mode: 'read_only' }];
      await world.backend.putGrants({ name, identity }, grants, none());
      expect(await identityNow()).toBe(identity);
      expect(await world.backend.holdsGrants({ name, identity }, grants, none())).toBe(true);

      await world.harness.replaceForeignBucket(name);
      expect(await identityNow()).not.toBe(identity);
      for (const asked of [grants, []]) {
        await expect(world.backend.putGrants({ name, identity }, asked, none())).rejects.toBeInstanceOf(ReplacedBucket);
        expect(await world.backend.holdsGrants({ name, identity }, asked, none())).toBe(false);
      }
      expect(await world.harness.grants(name)).toEqual([]);
    });

    it.skipIf((traits.issuesKeys && !traits.rightsAtBuckets) || traits.plainKeys)(
      'refuses more than a policy can hold and leaves what is there',
      async () => {
        const ref = await make();
        const kept = newPrincipal();
        await world.backend.putPrincipal(kept, none());
        await world.backend.putGrants(ref, [{ uid: kept.uid, mode: 'read_write' }], none());
        const many: Grant[] = Array.from({ length: 5000 }, (_, n) => ({
          uid: `trivet-many-${n}-${'x'.repeat(40)}`,
          mode: 'read_write',
        }));
        await failsWith(world.backend.putGrants(ref, many, none()), 'resource_exhausted');
        expect(await world.harness.grants(ref.name)).toEqual([{ uid: kept.uid, mode: 'read_write' }]);
        await world.backend.putGrants(ref, [], none());
        await remove(ref);
      },
    );

    it.runIf(traits.plainKeys)(
      'gives a key beside another one what that may do, and says that there is no write only',
      async () => {
        const ref = await make();
        const principal = newPrincipal();
        const { accessKeyId, secretAccessKey } = newPrincipal();
        const grants: Grant[] = [{ uid: principal.uid, mode: 'read_write' }];
        await world.backend.putPrincipal(principal, none());
        await world.backend.putGrants(ref, grants, none());
        await world.backend.putPrincipal({ ...principal, beside: [{ accessKeyId, secretAccessKey }] }, none());
        expect(await world.harness.grants(ref.name)).toEqual([...grants, ...grants]);
        expect(await world.backend.holdsGrants(ref, grants, none())).toBe(true);
        await failsWith(
          world.backend.putGrants(ref, [{ uid: principal.uid, mode: 'write_only' }], none()),
          'unimplemented',
        );
        await world.backend.putGrants(ref, [], none());
        expect(await world.harness.grants(ref.name)).toEqual([]);
        await remove(ref);
      },
    );
  });
}
