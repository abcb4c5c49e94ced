import { setTimeout as delay } from 'node:timers/promises';
import type { SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { REQUESTS, type SessionRequest } from '../../../apps/connector/src/sessions/resources.js';

export interface SessionLoadOptions {
  sessions: number;
  /** Who create at once. */
  creators: number;
  /** From one request to the next; 0: as fast as they are taken. */
  everyMs?: number;
  /** The VolumeSnapshot, in `apps`, that the request of this number names. */
  snapshotOf: (n: number) => string;
}

/** Many session requests, and how long each took from its creation to Ready, in ms and in order. */
export async function loadSessions(
  cluster: SessionCluster,
  { sessions, creators, everyMs = 0, snapshotOf }: SessionLoadOptions,
): Promise<{ seconds: number; times: number[] }> {
  const ready = new Map<string, number>();
  const over = new AbortController();
  let resourceVersion = '';
  for await (const { metadata } of cluster.admin.pages(REQUESTS, {}, { limit: '1' }))
    resourceVersion = metadata.resourceVersion;
  const seen = cluster.admin.watch(
    REQUESTS,
    { resourceVersion },
    ({ object }) => {
      const { metadata, status } = object as SessionRequest;
      if (status?.sessionState === 'Ready' && !ready.has(metadata.name)) ready.set(metadata.name, performance.now());
    },
    over.signal,
  );
  const created = new Map<string, number>();
  const backup = await cluster.client('backup');
  const began = performance.now();
  const creator = async (first: number): Promise<void> => {
    for (let n = first; n < sessions; n += creators) {
      const early = began + n * everyMs - performance.now();
      if (early > 0) await delay(early);
      const name = `request-${n}`;
      created.set(name, performance.now());
      const metadata = { name, namespace: 'apps' };
      const spec = { snapshots: [snapshotOf(n)] };
      const body = { apiVersion: REQUESTS.api, kind: 'SnapshotSessionRequest', metadata, spec };
      await backup.create(REQUESTS, { namespace: 'apps' }, body);
    }
  };
  await Promise.all(Array.from({ length: creators }, (_, first) => creator(first)));
  await until('all are Ready', () => ready.size === sessions, 120_000);
  const seconds = (performance.now() - began) / 1_000;
  over.abort();
  await seen;
  return { seconds, times: [...ready].map(([name, at]) => at - created.get(name)!).sort((a, b) => a - b) };
}
