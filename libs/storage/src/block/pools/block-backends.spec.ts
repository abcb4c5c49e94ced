import { expect, it, vi } from 'vitest';
import type { Database } from '#platform/database/database';
import { eachBlockBackend } from '#storage/block/pools/block-backends';

const backends = ['hung', 'broken', ...Array.from({ length: 40 }, (_, n) => `b${n}`)];
const database = {
  engine: async () =>
    backends.map(backendId => ({ tenantId: 'tenant', backendId, kind: 'xfs', config: {}, shares: false })),
} as unknown as Database;

it('visits the others beside one that hangs and one that fails, and throws at the end what that one threw', async () => {
  const seen: string[] = [];
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const visit = async ({ backendId }: { backendId: string }) => {
    seen.push(backendId);
    if (backendId === 'hung') await held;
    if (backendId === 'broken') throw new Error('a defect');
  };
  const made = eachBlockBackend(database, visit, { atOnce: 2 });
  const told = expect(made).rejects.toThrow('a defect');
  await vi.waitFor(() => expect([...seen].sort()).toEqual([...backends].sort()));
  letGo();
  await told;
});

it('visits one after the other, in their order, unless more are asked for', async () => {
  let inside = 0;
  const seen: string[] = [];
  await eachBlockBackend(database, async ({ backendId }) => {
    expect(++inside).toBe(1);
    await new Promise(resolve => setImmediate(resolve));
    seen.push(backendId);
    inside--;
  });
  expect(seen).toEqual(backends);
});
