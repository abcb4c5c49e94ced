import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BlockBackendKind } from '#backends/block-backend';
import type { StorageHost } from '#operations/workers/storage-host';
import type { Database } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { ExportLeaseKeeper } from '#storage/block/export-leases/export-lease-keeper';
import type { SeenPool } from '#storage/block/export-leases/lease-store';
import type { BlockDirectory } from '#storage/shared/backend-directory';

/** The lease is renewed as long as this host could serve the pool: another one could have it. */
function hostWithPool() {
  const said: SeenPool[] = [];
  const ended: unknown[] = [];
  let reaches = true;
  const home = { tenantId: 'tenant', backendId: 'backend', pool: 'pool', home: 'a', fence: '5', address: '10.0.0.1' };
  const answers: Record<string, (params: readonly unknown[]) => unknown[]> = {
    block_backends: () => [{ tenantId: 'tenant', backendId: 'backend', kind: 'rbd', config: {} }],
    exports_keep(params) {
      const [seen] = JSON.parse(params[1] as string) as [SeenPool];
      said.push(seen);
      return [{ ...home, renewed: seen.able, drains: false, toFence: [], takenWhy: null, obstacle: null }];
    },
    exports_release(params) {
      ended.push({ inOrder: params[4] });
      return [];
    },
  };
  const database = {
    engine: async ({ name }: { name: string }, params: readonly unknown[] = []) => answers[name]!(params),
  } as unknown as Database;
  const cluster = {
    async look() {
      if (!reaches) throw new StorageError('unavailable', 'no answer');
      return { fsid: 'fsid', address: '10.0.0.1', isShutOut: false };
    },
    lacksLink: () => undefined,
    hasLeftovers: async () => false,
    now: () => performance.now(),
    hold: async () => {},
    sendOn: async () => {},
    async drop(_: unknown, how: { orderly: boolean }) {
      ended.push(how);
      return false;
    },
  };
  const blocks = { open: async () => ({ cluster }) } as unknown as BlockDirectory;
  const kind = { isOfCluster: true, parseConfig: () => ({}), pools: () => [{ name: 'pool' }] };
  const host = { name: 'a', isOneOfSeveral: true, reach: { pools: [{ backend: 'backend', name: 'pool' }] } };
  const keeper = new ExportLeaseKeeper(
    database,
    blocks,
    () => kind as unknown as BlockBackendKind,
    host as unknown as StorageHost,
    { serve: async () => {} },
  );
  return {
    said,
    ended,
    loseCluster: () => {
      reaches = false;
    },
    /** Rounds of a second each. */
    async passes(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        await keeper.run();
        // What goes on beside the rounds.
        await new Promise(setImmediate);
        vi.advanceTimersByTime(1_000);
      }
    },
  };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('gives a pool up whose cluster it has lost, as soon as it is not renewed, and says that it did not end in order', async () => {
  const { said, ended, loseCluster, passes } = hostWithPool();
  await passes(6);
  expect(said.at(-1)).toMatchObject({ able: true, takes: true });
  loseCluster();
  await passes(8);
  expect(said.at(-1)).toMatchObject({ able: true });
  expect(ended).toEqual([]);
  await passes(6);
  expect(said.at(-1)).toMatchObject({ able: false, lacks: 'cluster' });
  expect(ended).toEqual([{ orderly: false }, { inOrder: false }]);
});

it('takes nothing over any more before it gives anything up, so that a cluster that is lost to all moves nothing', async () => {
  const { said, loseCluster, passes } = hostWithPool();
  await passes(6);
  loseCluster();
  await passes(14);
  const [takesUntil, ableUntil] = [said.findLastIndex(({ takes }) => takes), said.findLastIndex(({ able }) => able)];
  expect(ableUntil - takesUntil).toBeGreaterThanOrEqual(3);
});
