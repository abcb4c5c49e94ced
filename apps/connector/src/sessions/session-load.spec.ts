import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { REQUESTS, type SessionRequest } from './resources.js';

/** Many requests among many snapshots: what each costs. */
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });
const SNAPSHOTS = 10_000;
const SESSIONS = 200;
const CREATORS = 8;
const KEY = 'cbt.storage.k8s.io/snapshotsessionrequests';

let cluster: SessionCluster;
beforeAll(async () => {
  cluster = await SessionCluster.standIn();
  for (let n = 0; n < SNAPSHOTS; n++) await cluster.snapshot('apps', `s-${n}`);
  await cluster.manager();
});
afterAll(() => cluster?.close());

it('decides each of many requests with fewer than six calls', async () => {
  const ready = new Map<string, number>();
  cluster.api.stored.watch(KEY, cluster.api.stored.version, ({ object }) => {
    if ((object as unknown as SessionRequest).status?.sessionState === 'Ready')
      ready.set(object.metadata.name, performance.now());
  });
  const created = new Map<string, number>();
  const backup = await cluster.client('backup');
  const ofManager = () => cluster.api.calls.filter(({ user }) => user.endsWith(':trivet-connector'));
  await until('it watches', () => ofManager().some(({ verb }) => verb === 'watch'));
  const before = ofManager().length;
  const connectedBefore = cluster.api.connections;
  const began = performance.now();
  const creator = async (first: number): Promise<void> => {
    for (let n = first; n < SESSIONS; n += CREATORS) {
      const name = `request-${n}`;
      created.set(name, performance.now());
      const spec = { snapshots: [`s-${(n * 7) % SNAPSHOTS}`] };
      const metadata = { name, namespace: 'apps' };
      await backup.create(
        REQUESTS,
        { namespace: 'apps' },
        { apiVersion: REQUESTS.api, kind: 'SnapshotSessionRequest', metadata, spec },
      );
    }
  };
  await Promise.all(Array.from({ length: CREATORS }, (_, first) => creator(first)));
  await until('all are Ready', () => ready.size === SESSIONS, 120_000);
  const seconds = (performance.now() - began) / 1_000;
  const calls = ofManager().slice(before);
  const times = [...ready].map(([name, at]) => at - created.get(name)!).sort((a, b) => a - b);
  const figures = { seconds, median: times[SESSIONS / 2], p99: times[SESSIONS * 0.99], calls: calls.length / SESSIONS };
  process.stdout.write(`${SESSIONS} session requests: ${JSON.stringify(figures)}\n`);
  expect(figures.calls).toBeLessThan(6);
  expect(cluster.api.connections - connectedBefore).toBeLessThan(SESSIONS / 2);
  // What is named is asked for; nobody looks at all of them.
  expect(calls.filter(({ verb, resource }) => verb !== 'get' && resource.startsWith('volumesnapshot'))).toEqual([]);
});
