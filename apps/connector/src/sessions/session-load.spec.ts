import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { isReal, SessionCluster } from '#test/support/kube/session-cluster';
import { loadSessions } from '#test/support/kube/session-load';
import { until } from '#test/support/parts';
import type { KubeClient, ResourcePath } from '../kube/kube-client.js';

/** Many requests among many snapshots: what each costs. A real API server stores fewer snapshots, one by one. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
const SNAPSHOTS = isReal ? 500 : 10_000;
const SESSIONS = 200;
const CREATORS = 8;

let cluster: SessionCluster;
let manager: KubeClient;
const calls: { method: string; resource: ResourcePath }[] = [];
const watches = vi.fn();
beforeAll(async () => {
  cluster = await SessionCluster.start();
  for (let n = 0; n < SNAPSHOTS; n++) await cluster.snapshot('apps', `s-${n}`);
  manager = (await cluster.manager()).kube;
  const sends = manager as unknown as {
    send(method: string, resource: ResourcePath, ...more: never[]): Promise<unknown>;
  };
  const send = sends.send.bind(manager);
  sends.send = (method, resource, ...more) => {
    calls.push({ method, resource });
    return send(method, resource, ...more);
  };
  const watch = manager.watch.bind(manager);
  manager.watch = (...asked) => {
    watches();
    return watch(...asked);
  };
});
afterAll(() => cluster?.close());

it('decides each of many requests with fewer than six calls', async () => {
  await until('it watches', () => watches.mock.calls.length > 0);
  calls.length = 0;
  const connectedBefore = isReal ? 0 : cluster.api.connections;
  const snapshotOf = (n: number): string => `s-${(n * 7) % SNAPSHOTS}`;
  const { seconds, times } = await loadSessions(cluster, { sessions: SESSIONS, creators: CREATORS, snapshotOf });
  const figures = { seconds, median: times[SESSIONS / 2], p99: times[SESSIONS * 0.99], calls: calls.length / SESSIONS };
  process.stdout.write(`${SESSIONS} session requests: ${JSON.stringify(figures)}\n`);
  expect(figures.calls).toBeLessThan(6);
  if (!isReal) expect(cluster.api.connections - connectedBefore).toBeLessThan(SESSIONS / 2);
  // What is named is asked for; nobody looks at all of them.
  const looked = calls.filter(({ resource }) => resource.plural.startsWith('volumesnapshot'));
  expect(looked.map(({ method }) => method)).toEqual(looked.map(() => 'GET'));
});
