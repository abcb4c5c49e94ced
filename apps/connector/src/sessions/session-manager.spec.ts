import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ADDRESS, decidedAfterMs, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { KubeError } from '../kube/kube-client.js';
import { CREATOR_ANNOTATION, REQUESTS, type SessionRequest, SNAPSHOT_CONTENTS } from './resources.js';
import { SessionWaits } from './snapshot-handles.js';

/** The manager against an API server: what each request gets. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
let cluster: SessionCluster;
beforeAll(async () => {
  cluster = await SessionCluster.start();
  await cluster.manager();
  await cluster.snapshot('apps', 'first');
  await cluster.snapshot('apps', 'second');
});
afterAll(() => cluster?.close());

const asked = async (name: string, snapshots: unknown[], user = 'backup') =>
  cluster.request(user, 'apps', name, snapshots);

/** What the API server stores, not what this process measures. */
const expectSoon = async (name: string): Promise<void> =>
  expect(decidedAfterMs((await cluster.seen('apps', name))!)).toBeLessThan(10_000);

describe('a session request', () => {
  it('becomes Ready, with its data written before', async () => {
    const made = (await asked('good', ['first', 'second'])) as SessionRequest;
    expect(made.status?.sessionState).toBe('Pending');
    const status = await cluster.decided('apps', 'good');
    const token = status.sessionToken!;
    expect(status).toEqual({
      sessionState: 'Ready',
      sessionToken: expect.stringMatching(/^[a-z0-9]{52}$/),
      sessionURL: ADDRESS,
      caCert: Buffer.from(cluster.pair.ca).toString('base64'),
      expiryTime: expect.any(String),
    });
    const left = Date.parse(status.expiryTime!) - Date.now();
    expect(left).toBeGreaterThan(590_000);
    expect(left).toBeLessThan(605_000);
    await expectSoon('good');
    const data = (await cluster.allData()).find(({ metadata }) => metadata.name === token)!;
    expect(data.metadata.namespace).toBe(OWN_NAMESPACE);
    expect(data.spec.request).toEqual({ namespace: 'apps', name: 'good', uid: made.metadata.uid });
    expect(data.spec.snapshots).toEqual(
      ['first', 'second'].map(name => ({
        name,
        snapshotHandle: `handle-of-${name}`,
        volumeHandle: `volume-of-${name}`,
      })),
    );
    const written = Number((await cluster.seen('apps', 'good'))!.metadata.resourceVersion);
    expect(Number(data.metadata.resourceVersion)).toBeLessThan(written);
    expect(cluster.gateway.sessions.get(`k8s-${made.metadata.uid}`)?.snapshots).toEqual([
      'handle-of-first',
      'handle-of-second',
    ]);
  });

  it.each([
    ['missing', ['first', 'nothing'], 'VolumeSnapshot nothing does not exist'],
    ['unready', ['unready'], 'VolumeSnapshot unready is not ready to use'],
    [
      'strange',
      ['strange'],
      'CSI driver other.example.org has no SnapshotServiceConfiguration: it does not serve SnapshotMetadata',
    ],
    ['mixed', ['first', 'strange'], 'the VolumeSnapshots are of several CSI drivers: csi.hpe.com, other.example.org'],
    [
      'stolen',
      ['stolen'],
      'VolumeSnapshot stolen is not the one that VolumeSnapshotContent content-secret-handle-of-target belongs to',
    ],
    ['emptied', ['emptied'], 'VolumeSnapshot emptied has no VolumeSnapshotContent content-apps-handle-of-emptied'],
  ])('fails with a reason: %s', async (name, snapshots, error) => {
    if (name === 'unready') await cluster.snapshot('apps', 'unready', { ready: false });
    if (name === 'strange') await cluster.snapshot('apps', 'strange', { driver: 'other.example.org' });
    if (name === 'stolen') {
      await cluster.snapshot('secret', 'target');
      await cluster.snapshot('apps', 'stolen');
      await cluster.bind('apps', 'stolen', 'content-secret-handle-of-target');
    }
    if (name === 'emptied') {
      await cluster.snapshot('apps', 'emptied');
      await cluster.admin.delete(SNAPSHOT_CONTENTS, { name: 'content-apps-handle-of-emptied' });
    }
    await asked(`bad-${name}`, snapshots);
    expect(await cluster.decided('apps', `bad-${name}`)).toEqual({
      sessionState: 'Failed',
      error,
      expiryTime: expect.any(String),
    });
    await expectSoon(`bad-${name}`);
    await until('there is an event', async () =>
      (await cluster.allEvents()).some(
        event => event.note === error && (event.regarding as { name: string }).name === `bad-${name}`,
      ),
    );
    expect((await cluster.allData()).some(({ spec }) => spec.request.name === `bad-${name}`)).toBe(false);
  });

  it('fails with what the gateway says', async () => {
    cluster.gateway.error = 'snapshot handle-of-first does not exist';
    await asked('unknown', ['first']);
    expect((await cluster.decided('apps', 'unknown')).error).toBe(cluster.gateway.error);
    cluster.gateway.error = '';
  });

  it.each([
    ['nothing named', [], 'should have at least 1 items'],
    ['500 snapshots', Array.from({ length: 500 }, (_, n) => `s${n}`), 'must have at most 256 items'],
    ['one twice', ['first', 'first'], 'Duplicate value'],
    ['no name', ['A b'], 'should match'],
    ['a name that is too long', ['a'.repeat(254)], 'Too long'],
    ['one of another namespace', ['secret/target'], 'should match'],
    ['a number', [7], 'must be of type string'],
  ])('is refused by its schema: %s', async (_, snapshots, message) => {
    const answer = (await asked('refused', snapshots)) as KubeError;
    expect(answer).toMatchObject({ code: 422, message: expect.stringContaining(message) });
  });

  it('takes the longest names and 256 of them', async () => {
    const names = Array.from({ length: 256 }, (_, n) => `${'n'.repeat(248)}-${String(n).padStart(4, '0')}`);
    for (const name of names) await cluster.snapshot('apps', name, { handle: `h-${name.slice(-10)}` });
    expect(await asked('r'.repeat(253), names)).toHaveProperty('spec.snapshots.length', 256);
    expect((await cluster.decided('apps', 'r'.repeat(253))).sessionState).toBe('Ready');
    await expectSoon('r'.repeat(253));
  });

  it('cannot be changed afterwards', async () => {
    await asked('fixed', ['first']);
    await cluster.decided('apps', 'fixed');
    const admin = await cluster.client('admin');
    const path = { namespace: 'apps', name: 'fixed' };
    const found = await admin.get<SessionRequest>(REQUESTS, path);
    const spec = { snapshots: ['second'] };
    await expect(admin.replace(REQUESTS, path, { ...found, spec })).rejects.toMatchObject({
      code: 422,
      message: expect.stringContaining('spec cannot be changed'),
    });
    const status = { sessionState: 'Pending' };
    await expect(
      admin.replace(REQUESTS, { ...path, subresource: 'status' }, { ...found, status }),
    ).rejects.toMatchObject({ code: 422, message: expect.stringContaining('Ready and Failed are final') });
    const annotations = { ...found.metadata.annotations, [CREATOR_ANNOTATION]: '{}' };
    await expect(
      admin.replace(REQUESTS, path, { ...found, metadata: { ...found.metadata, annotations } }),
    ).rejects.toMatchObject({ code: 403 });
  });

  it('of who may not read the VolumeSnapshots is denied', async () => {
    await cluster.apply([
      {
        kind: 'ClusterRole',
        metadata: { name: 'requests-only' },
        rules: [{ apiGroups: ['cbt.storage.k8s.io'], resources: ['snapshotsessionrequests'], verbs: ['create'] }],
      },
    ]);
    await cluster.user('nosy', 'apps', ['requests-only']);
    const answer = (await asked('denied', ['first'], 'nosy')) as KubeError;
    expect(answer).toMatchObject({
      code: 403,
      message: expect.stringContaining('nosy may not read VolumeSnapshot first in apps'),
    });
    await cluster.user('elsewhere', 'other', ['trivet-snapshot-session-user']);
    expect(await asked('denied', ['first'], 'elsewhere')).toMatchObject({ code: 403 });
    expect(await cluster.seen('apps', 'denied')).toBeUndefined();
  });

  it('of who may read the one that it names is allowed, and no other', async () => {
    const rules = [
      { apiGroups: ['cbt.storage.k8s.io'], resources: ['snapshotsessionrequests'], verbs: ['create'] },
      {
        apiGroups: ['snapshot.storage.k8s.io'],
        resources: ['volumesnapshots'],
        verbs: ['get'],
        resourceNames: ['second'],
      },
    ];
    await cluster.apply([{ kind: 'ClusterRole', metadata: { name: 'second-only' }, rules }]);
    await cluster.user('narrow', 'apps', ['second-only']);
    expect(await asked('narrow-first', ['second', 'first'], 'narrow')).toBeInstanceOf(KubeError);
    await asked('narrow-second', ['second'], 'narrow');
    expect((await cluster.decided('apps', 'narrow-second')).sessionState).toBe('Ready');
  });

  it('takes its session with it when it is deleted', async () => {
    const made = (await asked('short', ['first'])) as SessionRequest;
    const { sessionToken } = await cluster.decided('apps', 'short');
    const backup = await cluster.client('backup');
    await backup.delete(REQUESTS, { namespace: 'apps', name: 'short' });
    await until(
      'its data is gone',
      async () => !(await cluster.allData()).some(({ metadata }) => metadata.name === sessionToken),
    );
    await until('its session is closed', () => !cluster.gateway.sessions.has(`k8s-${made.metadata.uid}`));
  });

  it('waits with a reason while no gateway answers, and goes on by itself', async () => {
    cluster.gateway.trouble = new SessionWaits('no gateway answers');
    await asked('patient', ['first']);
    await until('it says why', async () =>
      (await cluster.seen('apps', 'patient'))?.status?.error?.includes('no gateway answers'),
    );
    expect((await cluster.seen('apps', 'patient'))?.status?.sessionState).toBe('Pending');
    cluster.gateway.trouble = undefined;
    expect((await cluster.decided('apps', 'patient')).sessionState).toBe('Ready');
  });

  it('may ask about its session alone: tokens are for the manager and the sidecar', async () => {
    const backup = await cluster.client('backup');
    const path = { namespace: OWN_NAMESPACE, name: (await cluster.allData())[0]!.metadata.name };
    await expect(backup.get({ api: REQUESTS.api, plural: 'snapshotsessiondatas' }, path)).rejects.toMatchObject({
      code: 403,
    });
  });
});
