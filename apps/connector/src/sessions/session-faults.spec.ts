import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { decidedAfterMs, isReal, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { CREATOR_ANNOTATION, DATA, REQUESTS, type SessionRequest, VOLUME_SNAPSHOTS } from './resources.js';
import { orNothing, SessionWaits } from './snapshot-handles.js';

/** What is away, forged, over, or led by somebody else. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
let cluster: SessionCluster;
beforeEach(async () => {
  cluster = await SessionCluster.start();
  await cluster.snapshot('apps', 'first');
});
afterEach(() => cluster?.close());

const LEASES = { api: 'coordination.k8s.io/v1', plural: 'leases' };
const KEY = 'cbt.storage.k8s.io/snapshotsessionrequests';
const asked = (name: string, more: object = {}) => cluster.request('backup', 'apps', name, ['first'], more);

describe('the webhook', () => {
  it('away: nothing is created', async () => {
    const { stop } = await cluster.manager();
    await stop();
    expect(await asked('refused')).toMatchObject({
      code: 500,
      message: expect.stringContaining('failed calling webhook'),
    });
    expect(await cluster.seen('apps', 'refused')).toBeUndefined();
  });

  it.skipIf(isReal)('that cannot ask the API server refuses', async () => {
    await cluster.manager();
    cluster.api.rbac.remove(`system:serviceaccount:${OWN_NAMESPACE}:trivet-connector`);
    expect(await asked('refused')).toMatchObject({
      code: 500,
      message: expect.stringContaining('it is not known now'),
    });
  });

  it.skipIf(isReal)('passed by: what nobody vouches for is not animated', async () => {
    await cluster.manager();
    const first = (await asked('first')) as SessionRequest;
    await cluster.decided('apps', 'first');
    cluster.api.admission.clear();
    const record = first.metadata.annotations![CREATOR_ANNOTATION]!;
    const forged = JSON.stringify({ ...JSON.parse(record), user: { username: 'admin', groups: ['system:masters'] } });
    await cluster.snapshot('apps', 'second');
    const attempts = [
      ['without', ['first'], {}],
      ['forged', ['first'], { annotations: { [CREATOR_ANNOTATION]: forged } }],
      ['of-another', ['second'], { annotations: { [CREATOR_ANNOTATION]: record } }],
    ] as const;
    for (const [name, snapshots, more] of attempts) {
      await cluster.request('backup', 'apps', name, snapshots, more);
      const status = await cluster.decided('apps', name);
      expect(status, name).toMatchObject({ sessionState: 'Failed', error: expect.stringContaining('nobody vouches') });
    }
  });

  it.skipIf(isReal)('allowed it, but by now the creator may not: the controller has looked again', async () => {
    const webhook = await cluster.webhook();
    await asked('late');
    expect(cluster.stored('apps', 'late')).toBeDefined();
    cluster.api.rbac.remove('backup');
    await webhook.close();
    await cluster.manager();
    const status = await cluster.decided('apps', 'late');
    expect(status).toMatchObject({ sessionState: 'Failed', error: 'backup may not read VolumeSnapshot first' });
    expect(cluster.data).toEqual([]);
  });
});

describe('the API server', () => {
  it.skipIf(isReal)('has a clock five minutes off: the first that the webhook hears of it counts', async () => {
    cluster.api.stored.aheadMs = 300_000;
    await cluster.webhook();
    await asked('early');
    await cluster.manager();
    expect((await cluster.decided('apps', 'early')).sessionState).toBe('Ready');
  });

  it.skipIf(isReal)('away for a while: what was asked for before is decided after', async () => {
    await cluster.webhook();
    await asked('before');
    await cluster.manager({ lease: { durationMs: 3_000, deadlineMs: 2_000, retryMs: 200 } });
    await cluster.decided('apps', 'before');
    await cluster.api.stop();
    await cluster.api.start();
    await asked('after');
    expect((await cluster.decided('apps', 'after')).sessionState).toBe('Ready');
    expect(cluster.data).toHaveLength(2);
  });

  it.skipIf(isReal)('that has forgotten what a watch is to begin with is asked for everything, at once', async () => {
    await cluster.webhook();
    const { stored } = cluster.api;
    const watch = stored.watch.bind(stored);
    let watches = 0;
    stored.watch = (...asked) => {
      if (++watches === 1) stored.compact(KEY);
      return watch(...asked);
    };
    await cluster.manager();
    await until('it watches again', () => watches > 1);
    await asked('two');
    expect((await cluster.decided('apps', 'two')).sessionState).toBe('Ready');
  });

  it.skipIf(isReal)('whose watches tell nothing: the next look at everything finds it', async () => {
    await cluster.webhook();
    cluster.api.stored.watch = () => () => {};
    await cluster.manager({ relistMs: 1_000 });
    await until('it watches', () => cluster.api.calls.some(({ verb }) => verb === 'watch'));
    await asked('silent');
    expect((await cluster.decided('apps', 'silent')).sessionState).toBe('Ready');
  });
});

describe('a VolumeSnapshot', () => {
  it('deleted while its request waits: that fails with the reason, whether a gateway answers by then or not', async () => {
    await cluster.manager();
    cluster.gateway.trouble = new SessionWaits('no gateway answers');
    await asked('waiting');
    await until('it says why', async () =>
      (await cluster.seen('apps', 'waiting'))?.status?.error?.includes('no gateway answers'),
    );
    await cluster.admin.delete(VOLUME_SNAPSHOTS, { namespace: 'apps', name: 'first' });
    expect(await cluster.decided('apps', 'waiting')).toMatchObject({
      sessionState: 'Failed',
      error: 'VolumeSnapshot first does not exist',
    });
    expect(decidedAfterMs((await cluster.seen('apps', 'waiting'))!)).toBeLessThan(10_000);
    expect(await cluster.allData()).toEqual([]);
  });
});

describe('the end', () => {
  it('of a session: request and data go at their time, and no sooner', async () => {
    await cluster.manager({ ttlMs: 3_000, relistMs: 500 });
    await asked('short');
    await cluster.request('backup', 'apps', 'failed', ['nothing']);
    const { expiryTime } = await cluster.decided('apps', 'short');
    await cluster.decided('apps', 'failed');
    await until(
      'both are gone',
      async () => !(await cluster.seen('apps', 'short')) && !(await cluster.seen('apps', 'failed')),
    );
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiryTime!) - 1_000);
    await until('the data is gone', async () => (await cluster.allData()).length === 0);
  });

  it('of a request that waits: it goes when the time to live is over, and no sooner', async () => {
    await cluster.manager({ ttlMs: 3_000, relistMs: 500 });
    cluster.gateway.trouble = new SessionWaits('no gateway answers');
    const { metadata } = (await asked('waiting')) as SessionRequest;
    await until('it says why', async () => (await cluster.seen('apps', 'waiting'))?.status?.error);
    await until('it is gone', async () => !(await cluster.seen('apps', 'waiting')));
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(metadata.creationTimestamp!) + 2_000);
    expect(await cluster.allData()).toEqual([]);
  });

  it('of a request while nobody looked: its data and its session go', async () => {
    const first = await cluster.manager({ relistMs: 500 });
    const made = (await asked('orphan')) as SessionRequest;
    await cluster.decided('apps', 'orphan');
    await first.stop();
    await cluster.admin.delete(REQUESTS, { namespace: 'apps', name: 'orphan' });
    expect(await cluster.allData()).toHaveLength(1);
    await cluster.manager({ relistMs: 500 });
    await until('the data is gone', async () => (await cluster.allData()).length === 0);
    await until('the session is closed', () => !cluster.gateway.sessions.has(`k8s-${made.metadata.uid}`));
  });

  it('of a manager between the data and the answer: the next one goes on with the same session', async () => {
    await cluster.webhook();
    const { kube, stop } = await cluster.manager();
    const replace = kube.replace.bind(kube);
    kube.replace = (resource, ...rest) =>
      resource.plural === REQUESTS.plural
        ? Promise.reject(new Error('killed'))
        : replace(resource, ...(rest as [never, never]));
    await asked('twice');
    await until('the data is there', async () => (await cluster.allData()).length === 1);
    await stop();
    expect((await cluster.seen('apps', 'twice'))?.status?.sessionState ?? 'Pending').toBe('Pending');
    await cluster.manager();
    const status = await cluster.decided('apps', 'twice');
    expect((await cluster.allData()).map(({ metadata }) => metadata.name)).toEqual([status.sessionToken]);
    expect(cluster.gateway.sessions.size).toBe(1);
  });
});

describe('of two managers', () => {
  const lease = { durationMs: 2_000, deadlineMs: 1_200, retryMs: 200 };

  it('one decides, and the other when that is gone', async () => {
    const first = await cluster.manager({ lease });
    await until('the first leads', async () => (await leader()) === first.leadership.identity);
    const second = await cluster.manager({ lease });
    await asked('one');
    await cluster.decided('apps', 'one');
    expect(await leader()).toBe(first.leadership.identity);
    await first.stop();
    await until('the second leads', async () => (await leader()) === second.leadership.identity);
    await asked('two');
    expect((await cluster.decided('apps', 'two')).sessionState).toBe('Ready');
  });

  it.skipIf(isReal)('one that lost the lease does nothing', async () => {
    const first = await cluster.manager({ lease, relistMs: 300 });
    await until('it leads', async () => (await leader()) === first.leadership.identity);
    const key = 'coordination.k8s.io/leases';
    const path = `${OWN_NAMESPACE}/trivet-session-manager`;
    const taken = cluster.api.stored.get(key, path);
    cluster.api.stored.replace(key, path, {
      ...taken,
      spec: { ...(taken.spec as object), holderIdentity: 'another', leaseDurationSeconds: 600 },
    });
    const changes = () =>
      cluster.api.calls.filter(
        ({ user, resource }) =>
          user.endsWith('trivet-connector') && (resource === DATA.plural || resource === REQUESTS.plural),
      ).length;
    await until('it has seen that', () => isQuiet(changes));
    await asked('nobody');
    const before = changes();
    await until('it has looked at the lease again', leaseReads(3));
    expect(changes()).toBe(before);
    expect(cluster.stored('apps', 'nobody')?.status).toBeUndefined();
  });

  const leader = async (): Promise<string | undefined> => {
    const path = { namespace: OWN_NAMESPACE, name: 'trivet-session-manager' };
    const lease = await orNothing(cluster.admin.get<{ spec: { holderIdentity?: string } }>(LEASES, path));
    return lease?.spec.holderIdentity;
  };

  /** True once, for so many reads of the lease, nothing else was asked for. */
  let quiet = { calls: -1, reads: 0 };
  const reads = () => cluster.api.calls.filter(({ verb, resource }) => verb === 'get' && resource === 'leases').length;
  const isQuiet = (count: () => number): boolean => {
    if (count() !== quiet.calls) quiet = { calls: count(), reads: reads() };
    return reads() - quiet.reads >= 8;
  };
  const leaseReads = (more: number): (() => boolean) => {
    const from = reads();
    return () => reads() - from >= more;
  };
});
