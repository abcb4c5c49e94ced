/** Whether a store can be used, and what is said when it cannot. */
import { describe, expect, it } from 'vitest';
import { failsWith, none, type ObjectWorld, plain } from '#backends/conformance/object-world';
import { unleased } from '#platform/lease-signal';

export function describeBorder(world: ObjectWorld): void {
  const { traits, newRef, newPrincipal } = world;
  describe('health', () => {
    it('answers when the store can be used', () => expect(world.backend.health(none())).resolves.toBeUndefined());
    it('rejects with unavailable when the store cannot be reached', () =>
      failsWith(world.harness.unreachable.health(none()), 'unavailable'));
    it('rejects when the store does not accept our credentials', () =>
      failsWith(world.harness.refused.health(none()), 'unauthenticated'));
  });

  describe('errors at the border', () => {
    it('says unavailable from every method when the store is down', async () => {
      const down = world.harness.unreachable;
      const ref = newRef();
      const principal = { ...newPrincipal() };
      await failsWith(down.inspectBucket(ref.name, none()), 'unavailable');
      await failsWith(down.createBucket(ref, plain(), none()), 'unavailable');
      await failsWith(down.configureBucket(ref, plain(), none()), 'unavailable');
      await failsWith(down.emptyBucket(ref, none()), 'unavailable');
      await failsWith(down.deleteBucket(ref, none()), 'unavailable');
      await failsWith(down.putGrants(ref, [], none(), [principal.uid]), 'unavailable');
      if (traits.signs) return;
      await failsWith(down.putPrincipal(principal, none()), 'unavailable');
      await failsWith(down.removeKey(principal, none()), 'unavailable');
      await failsWith(down.removePrincipal(principal.uid, none()), 'unavailable');
    });

    it('says unauthenticated from every method when our credentials are refused', async () => {
      const { refused } = world.harness;
      const ref = newRef();
      const principal = newPrincipal();
      await failsWith(refused.inspectBucket(ref.name, none()), 'unauthenticated');
      await failsWith(refused.createBucket(ref, plain(), none()), 'unauthenticated');
      await failsWith(refused.deleteBucket(ref, none()), 'unauthenticated');
      await failsWith(refused.putGrants(ref, [], none(), [principal.uid]), 'unauthenticated');
      if (traits.signs) return;
      await failsWith(refused.putPrincipal(principal, none()), 'unauthenticated');
      await failsWith(refused.removeKey(principal, none()), 'unauthenticated');
      await failsWith(refused.removePrincipal(principal.uid, none()), 'unauthenticated');
    });

    it('says timeout when the signal has fired', async () => {
      const ref = newRef();
      await failsWith(world.backend.inspectBucket(ref.name, unleased(AbortSignal.abort())), 'timeout');
      await failsWith(world.backend.createBucket(ref, plain(), unleased(AbortSignal.abort())), 'timeout');
      expect(await world.backend.inspectBucket(ref.name, none())).toEqual({ state: 'absent' });
    });
  });
}
