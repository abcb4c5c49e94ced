import { expect, it, vi } from 'vitest';
import type { DaemonRef } from '#backends/exporter';
import type { Database } from '#platform/database/database';
import { StorageError } from '#platform/errors';
import { ExportSupervisor } from '#storage/block/publications/export-supervisor';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const PATIENCE_MS = 20;
const never = new AbortController().signal;
const rows: Record<string, unknown[]> = {
  block_backends: [{ backendId: 'backend', kind: 'xfs', config: {} }],
  replay_exporting_pools: [...Array.from({ length: 40 }, (_, n) => `hung-${n}`), 'dead', 'broken'].map(pool => ({
    pool,
    portals: [],
    portalSets: [],
  })),
};
const database = {
  engine: async () => [{ tenantId: 'tenant' }],
  withTenant: async (_: string, work: (tx: unknown) => unknown) =>
    work({ query: async ({ name }: { name: string }) => rows[name] ?? [] }),
} as unknown as Database;

/** tgtd of 40 pools never answers; that of `dead` is counted when it is started again. */
function hungStore() {
  const calls = new Map<string, number>();
  const letGo: ((error: Error) => void)[] = [];
  const exporter = {
    ensureDaemon: ({ pool }: DaemonRef): Promise<{ instance: string }> => {
      calls.set(pool, (calls.get(pool) ?? 0) + 1);
      if (pool === 'broken') return Promise.reject(new StorageError('unavailable', 'its portal is taken'));
      if (pool === 'dead') return Promise.resolve({ instance: '1' });
      return new Promise((_, reject) => letGo.push(reject));
    },
    suspectTargets: async () => [],
  };
  const blocks = { open: async () => ({ exporter }) } as unknown as BlockDirectory;
  return {
    blocks,
    calls,
    answer: () => {
      for (const reject of letGo.splice(0)) reject(new StorageError('timeout', 'late'));
    },
  };
}

it('starts a dead tgtd again in each round, whatever others do not answer, and asks those once and last', async () => {
  const { blocks, calls, answer } = hungStore();
  const supervisor = new ExportSupervisor(database, blocks, PATIENCE_MS);
  for (let round = 1; round <= 3; round++) {
    await supervisor.run(never);
    expect(calls.get('dead')).toBe(round);
    expect(calls.get('broken')).toBe(round);
    expect(calls.get('hung-7')).toBe(1);
  }
  answer();
  await vi.waitFor(async () => {
    await supervisor.run(never);
    expect(calls.get('hung-7')).toBe(2);
  });
  // They were slow: who answers has its turn before them.
  expect([...calls.keys()].slice(0, 1)).toEqual(['hung-0']);
  answer();
  calls.clear();
  await vi.waitFor(async () => {
    await supervisor.run(never);
    expect(calls.has('hung-7')).toBe(true);
  });
  expect([...calls.keys()].slice(0, 2)).toEqual(['dead', 'broken']);
});
