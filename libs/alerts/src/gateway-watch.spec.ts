import { expect, it, vi } from 'vitest';
import { GatewayWatch } from '#alerts/gateway-watch';

type Parts = ConstructorParameters<typeof GatewayWatch>[0];

/** @returns whether the gateway looks itself, where a worker is up and the workers' last look was so long ago; null: they never did */
async function standsIn(lookedMs: number | null, seenMs = 0): Promise<boolean> {
  const task = {
    name: 'alerts',
    scope: 'appliance',
    lastSuccessAt: lookedMs === null ? null : new Date(Date.now() - lookedMs),
  };
  const rows: Record<string, object[]> = { workers_list: [{ id: 'w', seenMs }], tasks_list: [task] };
  const run = vi.fn(async () => undefined);
  const send = vi.fn(async () => false);
  const watch = new GatewayWatch({
    database: { call: async ({ name }: { name: string }) => rows[name], withTenant: async () => undefined },
    appliance: { id: async () => 't' },
    watch: { run },
    sender: { send },
    doors: async () => ({ gateway: 'g:1', legs: [], certificate: undefined }),
  } as unknown as Parts);
  await watch.run(new AbortController().signal);
  expect(send.mock.calls.length).toBe(run.mock.calls.length);
  return run.mock.calls.length > 0;
}

it('a gateway stands in for workers that are up and do not look, as those of a release without alerts', async () => {
  expect(await standsIn(30_000)).toBe(false);
  expect(await standsIn(120_000)).toBe(true);
  expect(await standsIn(null)).toBe(true);
});

it('a gateway stands in as soon as no worker is up', async () => {
  expect(await standsIn(1_000, 60_000)).toBe(true);
});
