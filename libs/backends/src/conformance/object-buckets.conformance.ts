/** Buckets of an object store: whose they are, how they are made, emptied and removed. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { failsWith, none, type ObjectWorld, plain } from '#backends/conformance/object-world';

export function describeBuckets(world: ObjectWorld): void {
  const { traits, identity, newRef, make, remove, givenTo } = world;
  const keepsVersions = !traits.plainBuckets && !traits.quotasAlone;
  const hasLimits = !traits.plainBuckets && !traits.noQuotas && !traits.quotasAlone;
  describe('buckets', () => {
    it.runIf(traits.marksAtOnce)('goes absent, ours, absent', async () => {
      const ref = newRef();
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
      await world.backend.createBucket(ref, plain(), none());
      await world.backend.createBucket(ref, plain(), none());
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'ours',
        incarnation: ref.incarnation,
      });
      await failsWith(
        world.backend.createBucket({ ...ref, incarnation: randomUUID() }, plain(), none()),
        'already_exists',
      );
      expect(await world.backend.deleteBucket(ref, none())).toBe('deleted');
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
    });

    it.skipIf(traits.marksAtOnce)('goes absent, untagged, ours, absent', async () => {
      const ref = newRef();
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
      await world.backend.createBucket(ref, plain(), none());
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'untagged',
        empty: true,
        identity,
      });
      await world.backend.configureBucket(ref, plain(), none());
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'ours',
        incarnation: ref.incarnation,
      });
      expect(await world.backend.deleteBucket(ref, none())).toBe('deleted');
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
    });

    it.skipIf(traits.marksAtOnce)('tells an untagged bucket that holds objects from an empty one', async () => {
      const ref = newRef();
      await world.backend.createBucket(ref, plain(), none());
      await world.harness.seedObjects(ref.name, 1);
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'untagged',
        empty: false,
        identity,
      });
      await world.backend.configureBucket(ref, plain(), none());
      await remove(ref);
    });

    it('repeats create and configure without harm', async () => {
      const quotas = { quotaMaxSize: '10Mi', quotaMaxObjects: '100' };
      const limited = !traits.plainBuckets && !traits.noQuotas;
      const parameters = {
        ...(keepsVersions ? { versioning: 'true' } : {}),
        ...(limited ? quotas : {}),
        ...(traits.quotasAlone ? {} : { tags: 'b=2,a=1' }),
      };
      const ref = await make(parameters);
      await world.harness.seedObjects(ref.name, 1);
      await world.backend.createBucket(ref, plain(parameters), none());
      await world.backend.configureBucket(ref, plain(parameters), none());
      expect(await world.harness.bucketSpec(ref.name)).toEqual({
        versioning: keepsVersions,
        ...(limited ? { quotaMaxSize: '10485760', quotaMaxObjects: '100' } : {}),
        tags: traits.quotasAlone ? {} : { a: '1', b: '2' },
      });
      expect(await world.backend.deleteBucket(ref, none())).toBe('not_empty');
      await remove(ref);
    });

    it('makes a bucket without quota, tags and versioning when nothing is asked', async () => {
      const ref = await make();
      expect(await world.harness.bucketSpec(ref.name)).toEqual({ versioning: false, tags: {} });
      await remove(ref);
    });

    it('never adopts, configures, empties or deletes a foreign bucket', async () => {
      const ref = newRef();
      await world.harness.seedForeignBucket(ref.name);
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'foreign',
        byTrivet: false,
        identity,
      });
      await failsWith(world.backend.createBucket(ref, plain(), none()), 'already_exists');
      await failsWith(world.backend.configureBucket(ref, plain(), none()), 'failed_precondition');
      await failsWith(world.backend.emptyBucket(ref, none()), 'failed_precondition');
      expect(await world.backend.deleteBucket(ref, none())).toBe('foreign');
      expect(await world.harness.foreignBucketExists(ref.name)).toBe(true);
    });

    it('treats the bucket of another tenant as foreign', async () => {
      const ref = await make();
      const other = { ...ref };
      expect(await world.harness.otherTenant.inspectBucket(ref.name, none())).toEqual({
        state: 'foreign',
        byTrivet: true,
        identity,
      });
      await failsWith(world.harness.otherTenant.createBucket(other, plain(), none()), 'already_exists');
      expect(await world.harness.otherTenant.deleteBucket(other, none())).toBe('foreign');
      await remove(ref);
    });

    it('says how many bytes it holds', async () => {
      const ref = await make();
      expect(await world.backend.measureBucket(ref.name, none())).toBe(0n);
      await world.harness.seedObjects(ref.name, 2);
      const deadline = Date.now() + 20_000;
      let bytes: bigint | undefined = 0n;
      while (bytes === 0n && Date.now() < deadline) bytes = await world.backend.measureBucket(ref.name, none());
      expect(bytes).toBeGreaterThan(0n);
      await remove(ref);
      expect(await world.backend.measureBucket(ref.name, none())).toBeUndefined();
    });

    it.runIf(hasLimits)('takes a limit for the tenant, and takes it away, however often', async () => {
      for (const bytes of [10_000_000n, 10_000_000n, undefined, undefined])
        await world.backend.limitTenant(bytes, none());
    });

    it.skipIf(hasLimits)('says that it has no limit for a tenant, and takes that there is none', async () => {
      await failsWith(world.backend.limitTenant(10_000_000n, none()), 'unimplemented');
      await world.backend.limitTenant(undefined, none());
    });

    it('touches nothing under another incarnation of the name', async () => {
      const ref = await make();
      const stale = { name: ref.name, incarnation: randomUUID() };
      await world.harness.seedObjects(ref.name, 2);
      await failsWith(world.backend.configureBucket(stale, plain(), none()), 'failed_precondition');
      await failsWith(world.backend.emptyBucket(stale, none()), 'failed_precondition');
      expect(await world.backend.deleteBucket(stale, none())).toBe('foreign');
      for (const grants of givenTo()) await failsWith(world.backend.putGrants(stale, grants, none()), 'not_found');
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({
        state: 'ours',
        incarnation: ref.incarnation,
      });
      expect(await world.backend.deleteBucket(ref, none())).toBe('not_empty');
      await remove(ref);
    });

    it('says whether this very bucket holds anything', async () => {
      const ref = await make();
      expect(await world.backend.isBucketEmpty(ref, none())).toBe(true);
      await world.harness.seedObjects(ref.name, 1);
      expect(await world.backend.isBucketEmpty(ref, none())).toBe(false);
      expect(await world.backend.isBucketEmpty({ ...ref, incarnation: randomUUID() }, none())).toBe(true);
      await remove(ref);
      expect(await world.backend.isBucketEmpty(ref, none())).toBe(true);
    });

    it('answers absent for a missing bucket and has nothing to empty in it', async () => {
      const ref = newRef();
      expect(await world.backend.deleteBucket(ref, none())).toBe('absent');
      expect(await world.backend.emptyBucket(ref, none())).toEqual({ done: true, removed: 0 });
      await failsWith(world.backend.configureBucket(ref, plain(), none()), 'not_found');
    });

    it('empties in bounded portions until nothing is left', async () => {
      const ref = await make(keepsVersions ? { versioning: 'true' } : {});
      await world.harness.seedObjects(ref.name, 5);
      let removed = 0;
      for (;;) {
        const step = await world.backend.emptyBucket(ref, none());
        removed += step.removed;
        if (step.done) break;
      }
      expect(removed).toBeGreaterThanOrEqual(5);
      expect(await world.backend.deleteBucket(ref, none())).toBe('deleted');
    });

    it.skipIf(traits.quotasAlone)('refuses to empty what is locked and names the object', async () => {
      const ref = await make(traits.plainBuckets ? {} : { objectLock: 'true' });
      const key = await world.harness.seedLockedObject(ref.name);
      const error = await world.backend.emptyBucket(ref, none()).catch((e: Error) => e);
      expect(error).toMatchObject({ kind: 'failed_precondition' });
      expect((error as Error).message).toContain(key);
      expect(await world.backend.deleteBucket(ref, none())).toBe('not_empty');
    });
  });
}
