import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SessionCluster } from '#test/support/kube/session-cluster';
import { KubeError, type ObjectPath, type ResourcePath } from '../../apps/connector/src/kube/kube-client.js';
import { DATA, REQUESTS } from '../../apps/connector/src/sessions/resources.js';

/** How an API server refuses. What stands here was seen of kube-apiserver 1.35.4: with TRIVET_TEST_APISERVER that is asked. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const METADATA_SERVICES: ResourcePath = { api: 'cbt.storage.k8s.io/v1beta1', plural: 'snapshotmetadataservices' };
const LEASES: ResourcePath = { api: 'coordination.k8s.io/v1', plural: 'leases' };
const TOKEN_REVIEWS: ResourcePath = { api: 'authentication.k8s.io/v1', plural: 'tokenreviews' };
const APPS: ObjectPath = { namespace: 'apps' };

let cluster: SessionCluster;
beforeAll(async () => {
  cluster = await SessionCluster.start({ hasCommunity: true });
  await cluster.webhook();
});
afterAll(() => cluster?.close());

type Answer = [code: number, reason: string] | 'done';
const answerOf = (asked: Promise<unknown>): Promise<Answer> =>
  asked.then(
    () => 'done' as const,
    error => {
      if (!(error instanceof KubeError)) throw error;
      return [error.code, error.reason];
    },
  );

const request = (metadata: object, more: object = {}) => ({
  apiVersion: REQUESTS.api,
  kind: 'SnapshotSessionRequest',
  metadata,
  spec: { snapshots: ['one'] },
  ...more,
});
const service = (caCert: string) => ({
  apiVersion: METADATA_SERVICES.api,
  kind: 'SnapshotMetadataService',
  metadata: { name: 'csi.example' },
  spec: { address: 'a:1', audience: 'a', caCert },
});
const lease = (name: string, spec: object) => ({ apiVersion: LEASES.api, kind: 'Lease', metadata: { name }, spec });
const data = (name: string, more: object = {}) => ({
  apiVersion: DATA.api,
  kind: 'SnapshotSessionData',
  metadata: { name },
  spec: {
    driver: 'd',
    expiryTime: '2030-01-01T00:00:00Z',
    request: { namespace: 'apps', name: 'n', uid: 'u' },
    snapshots: [{ name: 's', snapshotHandle: 'h' }],
    ...more,
  },
});
const T = 'a'.repeat(40);

describe('what is created', () => {
  const create = (resource: ResourcePath, path: ObjectPath, body: object) => () =>
    cluster.admin.create(resource, path, body);
  it.each<[string, () => Promise<unknown>, Answer]>([
    [
      'in a namespace that is not there',
      create(REQUESTS, { namespace: 'nowhere' }, request({ name: 'a' })),
      [404, 'NotFound'],
    ],
    [
      'of another namespace than its path',
      create(REQUESTS, APPS, request({ name: 'a', namespace: 'other' })),
      [400, 'BadRequest'],
    ],
    [
      'of another version',
      create(REQUESTS, APPS, { ...request({ name: 'a' }), apiVersion: 'cbt.storage.k8s.io/v9' }),
      [400, 'BadRequest'],
    ],
    ['without a name', create(REQUESTS, APPS, request({})), [422, 'Invalid']],
    ['with capitals in its name', create(REQUESTS, APPS, request({ name: 'A' })), [422, 'Invalid']],
    [
      'with a label that is none',
      create(REQUESTS, APPS, request({ name: 'a', labels: { a: 'b c' } })),
      [422, 'Invalid'],
    ],
    [
      'with an annotation whose key is none',
      create(REQUESTS, APPS, request({ name: 'a', annotations: { 'a b': '' } })),
      [422, 'Invalid'],
    ],
    [
      'with annotations above 256 KiB',
      create(DATA, APPS, { ...data(T), metadata: { name: T, annotations: { a: 'x'.repeat(262_144) } } }),
      [422, 'Invalid'],
    ],
    ['with a resource version', create(REQUESTS, APPS, request({ name: 'a', resourceVersion: '1' })), [500, '']],
    [
      'with a number for a name',
      create(REQUESTS, APPS, request({ name: 'a' }, { spec: { snapshots: [1] } })),
      [422, 'Invalid'],
    ],
    [
      'with the same snapshot twice',
      create(REQUESTS, APPS, request({ name: 'a' }, { spec: { snapshots: ['a', 'a'] } })),
      [422, 'Invalid'],
    ],
    [
      'with null where a list is to be',
      create(REQUESTS, APPS, request({ name: 'a' }, { spec: { snapshots: null } })),
      [422, 'Invalid'],
    ],
    ['with an authority that is empty', create(METADATA_SERVICES, {}, service('')), [422, 'Invalid']],
    ['with an authority that is no base64', create(METADATA_SERVICES, {}, service('a')), [422, 'Invalid']],
    [
      'with a time without its zone',
      create(DATA, APPS, data(T, { expiryTime: '2030-01-01T00:00:00' })),
      [422, 'Invalid'],
    ],
    [
      'with a day that there is not',
      create(DATA, APPS, data(T, { expiryTime: '2030-02-31T00:00:00Z' })),
      [422, 'Invalid'],
    ],
    ['with a field too long, in letters of two bytes', create(DATA, APPS, data(T, { driver: 'ä'.repeat(63) })), 'done'],
    ['with letters outside the first plane', create(DATA, APPS, data(`b${T}`, { driver: '😀'.repeat(63) })), 'done'],
    ['a lease for no time', create(LEASES, APPS, lease('none', { leaseDurationSeconds: 0 })), [422, 'Invalid']],
    [
      'a lease with a time of milliseconds',
      create(LEASES, APPS, lease('ms', { renewTime: '2030-01-01T00:00:00.000Z' })),
      [400, 'BadRequest'],
    ],
    [
      'a review of no token',
      create(TOKEN_REVIEWS, {}, { apiVersion: TOKEN_REVIEWS.api, kind: 'TokenReview', spec: { token: '' } }),
      [400, 'BadRequest'],
    ],
  ])('%s', async (_, ask, answer) => {
    expect(await answerOf(ask())).toEqual(answer);
  });
});

describe('what is replaced', () => {
  type Stored = ReturnType<typeof data> & {
    metadata: { name: string; uid: string; resourceVersion: string; namespace: string };
  };
  let made: Stored;
  const path = (): ObjectPath => ({ ...APPS, name: made.metadata.name });
  const given = (change: object): object => ({ ...made, metadata: { ...made.metadata, ...change } });
  beforeAll(async () => {
    made = await cluster.admin.create<Stored>(DATA, APPS, data('c'.repeat(40)));
  });
  it.each<[string, () => Promise<unknown>, Answer]>([
    [
      'that is not there',
      () => cluster.admin.replace(DATA, { ...APPS, name: 'd'.repeat(40) }, given({ name: 'd'.repeat(40) })),
      [404, 'NotFound'],
    ],
    [
      'by one without a version',
      () => cluster.admin.replace(DATA, path(), given({ resourceVersion: undefined })),
      [422, 'Invalid'],
    ],
    [
      'by one of an older version',
      () => cluster.admin.replace(DATA, path(), given({ resourceVersion: '1' })),
      [409, 'Conflict'],
    ],
    [
      'by one that has its name by now',
      () => cluster.admin.replace(DATA, path(), given({ uid: 'another' })),
      [409, 'Conflict'],
    ],
    [
      'by one of another name',
      () => cluster.admin.replace(DATA, path(), given({ name: 'd'.repeat(40) })),
      [400, 'BadRequest'],
    ],
    [
      'by one with another spec',
      () => cluster.admin.replace(DATA, path(), { ...given({}), spec: data('x', { driver: 'e' }).spec }),
      [422, 'Invalid'],
    ],
    [
      'in a part that it does not have',
      () => cluster.admin.replace(DATA, { ...path(), subresource: 'status' }, given({})),
      [404, 'NotFound'],
    ],
    ['by the same', () => cluster.admin.replace(DATA, path(), given({})), 'done'],
  ])('%s', async (_, ask, answer) => {
    expect(await answerOf(ask())).toEqual(answer);
  });

  it('keeps its version when nothing changes', async () => {
    const same = await cluster.admin.replace<Stored>(DATA, path(), made);
    expect(same.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
  });
});

describe('what is listed', () => {
  const list = async (query: Record<string, string>, path: ObjectPath = {}): Promise<void> => {
    for await (const _ of cluster.admin.pages(DATA, path, query));
  };
  it.each<[string, Record<string, string>, Answer]>([
    ['from where no page ended', { limit: '1', continue: 'nonsense' }, [400, 'BadRequest']],
    ['by labels that are none', { labelSelector: 'a b' }, [400, 'BadRequest']],
    ['by a field that cannot be asked for', { fieldSelector: 'spec.driver=d' }, [400, 'BadRequest']],
    ['so many that it is no number', { limit: 'many' }, [400, 'BadRequest']],
  ])('%s', async (_, query, answer) => {
    expect(await answerOf(list(query))).toEqual(answer);
  });
  it('of a namespace that is not there is empty', async () => {
    expect(await answerOf(list({}, { namespace: 'nowhere' }))).toBe('done');
  });
});
