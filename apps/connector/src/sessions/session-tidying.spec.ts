import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { log, SessionCluster } from '#test/support/kube/session-cluster';
import { StatusError } from '#test/support/kube/stored-objects';
import { until } from '#test/support/parts';
import type { KubeClient } from '../kube/kube-client.js';
import { DATA, REQUESTS, type SessionRequest } from './resources.js';
import { SessionWaits } from './snapshot-handles.js';

/** Many objects, large ones, ones that cannot be removed, and names that nobody may see. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
let cluster: SessionCluster;
beforeEach(async () => {
  cluster = await SessionCluster.standIn();
  await cluster.snapshot('apps', 'first');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await cluster?.close();
});

const KEY = 'cbt.storage.k8s.io/snapshotsessionrequests';
const DATA_KEY = 'cbt.storage.k8s.io/snapshotsessiondatas';
const MANY = 45;
const asked = (name: string) => cluster.request('backup', 'apps', name, ['first']);

/** Requests with sessions, while the manager that made them is away. */
async function makeMany(ttlMs: number): Promise<void> {
  const { stop } = await cluster.manager({ ttlMs });
  const names = Array.from({ length: MANY }, (_, n) => `r-${n}`);
  for (const name of names) await asked(name);
  for (const name of names) await cluster.decided('apps', name);
  await stop();
}

/** Refuses to remove what it says, in the words of an API server. */
function keep(isKept: (resource: string, key: string) => boolean): void {
  const { stored } = cluster.api;
  const remove = stored.delete.bind(stored);
  stored.delete = (resource, key, ...more) => {
    if (!isKept(resource, key)) return remove(resource, key, ...more);
    throw new StatusError(500, 'InternalError', `admission webhook denied the deletion of ${resource} "${key}"`);
  };
}

describe('a look at everything', () => {
  it('takes twenty at a time, and removes sixteen at a time', async () => {
    await makeMany(3_000);
    const until3s = Math.max(...cluster.data.map(({ spec }) => Date.parse(spec.expiryTime)));
    await until('all are over', () => Date.now() > until3s + 1_000);
    const closed: string[] = [];
    const { gateway } = cluster;
    const close = gateway.close.bind(gateway);
    gateway.close = name => {
      closed.push(name);
      return close(name);
    };
    const removing = { now: 0, most: 0 };
    const pages: number[] = [];
    watchCalls(await cluster.client('connector'), removing, pages);
    await cluster.manager({ ttlMs: 3_000 });
    await until('requests and data are gone', () => cluster.api.stored.of(KEY).size + cluster.data.length === 0);
    expect(Math.max(...pages)).toBe(20);
    expect(removing.most).toBeGreaterThan(8);
    expect(removing.most).toBeLessThanOrEqual(16);
    // The watch tells of what was removed here, before it tells of this one.
    const last = (await asked('last')) as SessionRequest;
    await cluster.decided('apps', 'last');
    const backup = await cluster.client('backup');
    await backup.delete(REQUESTS, { namespace: 'apps', name: 'last' });
    await until('the last one is closed', () => closed.includes(`k8s-${last.metadata.uid}`));
    expect(closed).toHaveLength(MANY + 1);
  });

  it('goes on when one cannot be removed, and says so of a few', async () => {
    const warned = vi.spyOn(log, 'warn');
    keep((resource, key) => (resource === KEY || resource === DATA_KEY) && kept.has(key));
    const kept = new Set<string>();
    await makeMany(3_000);
    for (let n = 0; n < 15; n++) kept.add(`apps/r-${n}`);
    kept.add(`trivet-sessions/${cluster.data[0]!.metadata.name}`);
    warned.mockClear();
    const until3s = Math.max(...cluster.data.map(({ spec }) => Date.parse(spec.expiryTime)));
    await until('all are over', () => Date.now() > until3s + 1_000);
    await cluster.manager({ ttlMs: 3_000, relistMs: 60_000 });
    await until('the others are gone', () => cluster.api.stored.of(KEY).size === 15 && cluster.data.length === 1);
    await asked('after');
    expect((await cluster.decided('apps', 'after')).sessionState).toBe('Ready');
    const texts = warned.mock.calls.map(call => inspect(call));
    expect(texts.filter(text => text.includes('what is over could not be removed'))).toHaveLength(10);
    expect(texts.filter(text => text.includes('so many objects'))).toEqual([expect.stringContaining('failed: 16')]);
  });
});

/** Counts what every client of the API server's asks for: managers make their own. */
function watchCalls(client: KubeClient, removing: { now: number; most: number }, pages: number[]): void {
  const prototype = Object.getPrototypeOf(client) as KubeClient;
  const remove = prototype.delete;
  vi.spyOn(prototype, 'delete').mockImplementation(async function (this: KubeClient, ...args) {
    removing.most = Math.max(removing.most, ++removing.now);
    await remove.apply(this, args).finally(() => removing.now--);
  });
  const list = prototype.pages;
  vi.spyOn(prototype, 'pages').mockImplementation(async function* (this: KubeClient, ...args) {
    for await (const page of list.apply(this, args)) {
      pages.push(page.items.length);
      yield page as never;
    }
  });
}

describe('a request that waits', () => {
  it('is read when its turn has come: what it says now counts', async () => {
    await cluster.webhook();
    await asked('early');
    cluster.api.stored.watch = () => () => {};
    cluster.gateway.trouble = new SessionWaits('no gateway answers');
    await cluster.manager();
    await until('it says why', () => cluster.stored('apps', 'early')?.status?.error?.includes('no gateway answers'));
    cluster.gateway.trouble = undefined;
    expect((await cluster.decided('apps', 'early')).sessionState).toBe('Ready');
  });

  it('is left when it is gone, or another has decided it', async () => {
    await cluster.webhook();
    for (const name of ['gone', 'decided', 'last']) await asked(name);
    cluster.api.stored.watch = () => () => {};
    const open = cluster.gateway.open.bind(cluster.gateway);
    const opened: string[] = [];
    cluster.gateway.open = async request => {
      opened.push(request.name);
      if (opened.length <= 3) throw new SessionWaits('no gateway answers');
      return open(request);
    };
    const uidOf = (name: string) => `k8s-${cluster.stored('apps', name)!.metadata.uid}`;
    const last = uidOf('last');
    await cluster.manager();
    await until('all were tried', () => opened.length >= 3);
    const { stored } = cluster.api;
    stored.delete(KEY, 'apps/gone');
    const found = stored.get(KEY, 'apps/decided');
    stored.replace(KEY, 'apps/decided', { ...found, status: { sessionState: 'Failed', error: 'by another' } });
    await cluster.decided('apps', 'last');
    expect(opened.slice(3)).toEqual([last]);
    expect(cluster.stored('apps', 'decided')!.status!.error).toBe('by another');
  });

  it('is read when it is not any more what the watch told', async () => {
    const { stored } = cluster.api;
    const watch = stored.watch.bind(stored);
    stored.watch = (key, from, tell) => watch(key, from, event => event.type === 'ADDED' && tell(event));
    const open = cluster.gateway.open.bind(cluster.gateway);
    let opened = 0;
    cluster.gateway.open = async request => {
      if (++opened === 1)
        stored.replace(KEY, 'apps/moved', { ...stored.get(KEY, 'apps/moved'), status: { error: 'waits' } });
      return open(request);
    };
    await cluster.manager();
    await until('it watches', () => cluster.api.calls.some(({ verb }) => verb === 'watch'));
    await asked('moved');
    expect((await cluster.decided('apps', 'moved')).sessionState).toBe('Ready');
    expect(opened).toBe(2);
  });
});

describe('the token', () => {
  it('is in no event, status or log when its data cannot be stored or removed', async () => {
    const warned = vi.spyOn(log, 'warn');
    const { stored } = cluster.api;
    const create = stored.create.bind(stored);
    let failing = true;
    stored.create = (resource, namespace, object) => {
      if (resource === DATA_KEY && failing)
        throw new StatusError(500, 'InternalError', `${DATA.plural} "${object.metadata.name}" was not stored`);
      return create(resource, namespace, object);
    };
    const { kube } = await cluster.manager({ relistMs: 500 });
    const made = (await asked('secret')) as SessionRequest;
    const token = `k8s${made.metadata.uid!.replaceAll('-', '')}`.padEnd(52, 'a');
    await until('it says why', () => cluster.stored('apps', 'secret')?.status?.error);
    await until('there is an event', () => cluster.events.length > 0);
    expect(cluster.stored('apps', 'secret')!.status!.error).toContain(`${DATA.plural} "(its name)" was not stored`);
    expect(inspect(cluster.events, { depth: 9 })).not.toContain(token);
    failing = false;
    expect((await cluster.decided('apps', 'secret')).sessionToken).toBe(token);
    keep(resource => resource === DATA_KEY);
    const asks = [
      () => kube.delete(DATA, { namespace: 'trivet-sessions', name: token }),
      () => kube.get(DATA, { namespace: 'elsewhere', name: token }),
    ];
    for (const ask of asks) {
      const error = (await ask().catch(thrown => thrown)) as Error;
      expect(error.message).toContain('(its name)');
      expect(inspect(error, { depth: 9 })).not.toContain(token);
    }
    const backup = await cluster.client('backup');
    await backup.delete(REQUESTS, { namespace: 'apps', name: 'secret' });
    await until('it was tried', () => warned.mock.calls.some(call => inspect(call).includes('could not be removed')));
    expect(inspect(warned.mock.calls, { depth: 9, maxArrayLength: null })).not.toContain(token);
  });
});
