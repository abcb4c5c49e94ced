import { describe, expect, it, vi } from 'vitest';
import { Lease, type LeaseManager } from '#operations/leases/lease';
import type { LeasedOperation } from '#operations/operation';
import type { Circuits } from '#operations/running/circuit';
import { LeasedContext, SLOW_MS } from '#operations/running/step-context';
import { StorageError } from '#platform/errors';

/** What a stop hands back at once, and what only when nothing can come of a call any more (invariant E5). */
describe('the horizon of a call', () => {
  const begin = () => {
    const operation = { id: 'one', tenantId: 't', backendId: 'b', kind: 'test.work' } as LeasedOperation;
    const lease = new Lease(operation, performance.now(), 60_000);
    const leases = { ttlMs: 60_000, ensure: async () => {} } as unknown as LeaseManager;
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

describe('what an error of a call says of its backend', () => {
  it.each([
    ['timeout', 'unanswered'],
    ['unavailable', 'unanswered'],
    ['unauthenticated', 'refused'],
    ['permission_denied', undefined],
    ['not_found', 'answered'],
    ['internal', 'answered'],
    ['aborted', undefined],
  ] as const)('%s: %s', async (kind, heard) => {
    const said: string[] = [];
    const note =
      (name: string) =>
      async (_tenant: string, _backend: string, message = '') => {
        said.push([name, message].filter(Boolean).join(': '));
      };
    const circuits = { answered: note('answered'), unanswered: note('unanswered'), refused: note('refused') };
    const operation = { id: 'one', tenantId: 't', backendId: 'b', kind: 'test.work' } as LeasedOperation;
    const leases = { ttlMs: 60_000, ensure: async () => {} } as unknown as LeaseManager;
    const lease = new Lease(operation, performance.now(), 60_000);
    const context = new LeasedContext(lease, leases, circuits as unknown as Circuits, []);
    await expect(context.call('createBucket', () => Promise.reject(new StorageError(kind, 'why')))).rejects.toThrow();
    const expected = heard === 'answered' ? ['answered'] : heard ? [`${heard}: why`] : [];
    expect(said).toEqual(expected);
  });
});

it('tells of a long call that does not return, less and less often, and once more when it has', async () => {
  vi.useFakeTimers();
  try {
    const told: [number, boolean][] = [];
    const operation = { id: 'one', tenantId: 't', backendId: 'b', kind: 'test.work' } as LeasedOperation;
    const leases = {
      ttlMs: 60_000,
      ensure: async () => {},
      tellSlow: (_: LeasedOperation, call: string, ms: number, ended = false) =>
        told.push([call === 'stage' ? ms : Number.NaN, ended]),
    } as unknown as LeaseManager;
    const lease = new Lease(operation, performance.now(), 60_000_000);
    const context = new LeasedContext(lease, leases, { answered: () => {} } as unknown as Circuits, []);
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = context.long('stage', () => promise);
    await vi.advanceTimersByTimeAsync(SLOW_MS * 99);
    const [first, second] = [SLOW_MS, SLOW_MS * 10].map(ms => [ms, false]);
    expect(told).toEqual([first, second]);
    resolve();
    await call;
    await vi.advanceTimersByTimeAsync(SLOW_MS * 10);
    expect(told).toEqual([first, second, [SLOW_MS * 99, true]]);
    await context.long('quick', async () => {});
    expect(told).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});
