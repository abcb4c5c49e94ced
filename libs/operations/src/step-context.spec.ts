import { describe, expect, it } from 'vitest';
import type { Circuits } from '#operations/circuit';
import { Lease, type LeaseKeeper } from '#operations/lease';
import type { LeasedOperation } from '#operations/operation';
import { LeasedContext } from '#operations/step-context';
import { StorageError } from '#platform/errors';

/** What a stop hands back at once, and what only when nothing can come of a call any more (invariant E5). */
describe('the horizon of a call', () => {
  const begin = () => {
    const operation = { id: 'one', tenantId: 't', backendId: 'b', kind: 'test.work' } as LeasedOperation;
    const lease = new Lease(operation, performance.now(), 60_000);
    const leases = { ttlMs: 60_000, ensure: async () => {} } as unknown as LeaseKeeper;
    const circuits = { answered: () => {}, unanswered: async () => {} } as unknown as Circuits;
    return { lease, context: new LeasedContext(lease, leases, circuits, []) };
  };

  it('lasts while it is open, and is over with its answer', async () => {
    const { lease, context } = begin();
    let inside = 0;
    await context.call('createBucket', async () => {
      inside = lease.horizonLeftMs();
    });
    expect(inside).toBeGreaterThan(0);
    expect(lease.horizonLeftMs()).toBe(0);
  });

  it('outlives a call without an answer', async () => {
    const { lease, context } = begin();
    const call = context.call('createBucket', () => Promise.reject(new StorageError('timeout', 'no answer')));
    await expect(call).rejects.toThrow('no answer');
    expect(lease.horizonLeftMs()).toBeGreaterThan(0);
  });
});
