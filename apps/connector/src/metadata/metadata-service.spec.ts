import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type handleServerStreamingCall, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { CbtClient } from '#test/cbt/client';
import type { Value } from '#test/cbt/wire';
import type { CommunityReader } from '#test/support/kube/community-reader';
import { DRIVER, isReal, log, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { DoorKeys } from '../kube/door-keys.js';
import type { KubeClient } from '../kube/kube-client.js';
import { AccessReviews } from '../sessions/access-reviews.js';
import type { Upstream } from '../sessions/relay.js';
import { VOLUME_SNAPSHOTS } from '../sessions/resources.js';
import { SessionSidecar } from '../sessions/session-sidecar.js';
import { Advertisement, METADATA_SERVICES } from './advertisement.js';
import { metadataService } from './metadata-service.js';
import { TokenReviews } from './token-reviews.js';

/**
 * The door in the place of the community's sidecar: its clients read, and what it refuses has the code and the words that external-snapshot-metadata
 * 1.1 gives (pkg/internal/server/grpc: status.go, auth.go, snapshot.go, and what their tests expect). Behind it a csi.v1 service, which here says
 * what it was asked.
 */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });
const csi = loadSync(join(PACKAGE_ROOT, 'proto', 'csi', 'v1', 'snapshot-metadata.proto'), {
  keepCase: true,
  defaults: true,
  longs: Number,
});
const AUDIENCE = 'trivet-snapshot-metadata';
const ALLOCATED = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';
const DELTA = '/snapshotmetadata.SnapshotMetadata/GetMetadataDelta';
const account = { namespace: 'backups', name: 'velero' };
const reading = { namespace: 'apps', snapshotName: 'second', account };

let cluster: SessionCluster;
let door: SessionSidecar;
let advertisement: Advertisement;
let service: Server;
let client: CbtClient;
let reader: CommunityReader;
let folder: string;
let kube: KubeClient;
let token: string;
let asked: Record<string, unknown>[] = [];
let answer: handleServerStreamingCall<object, object>;

const reply = (offset: number) => ({
  block_metadata_type: 2,
  volume_capacity_bytes: 1 << 30,
  block_metadata: [{ byte_offset: offset, size_bytes: 4096 }],
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-metadata-'));
  const socketPath = join(folder, 'csi.sock');
  service = new Server();
  const handler: handleServerStreamingCall<object, object> = call => {
    asked.push(call.request as Record<string, unknown>);
    answer(call);
  };
  const handlers = { GetMetadataAllocated: handler, GetMetadataDelta: handler };
  service.addService(csi['csi.v1.SnapshotMetadata'] as never, handlers);
  await new Promise<void>((resolve, reject) =>
    service.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), error =>
      error ? reject(error) : resolve(),
    ),
  );
  cluster = await SessionCluster.start({ hasCommunity: true });
  for (const name of ['first', 'second']) await cluster.snapshot('apps', name);
  reader = await cluster.reader(account.name);
  kube = Object.assign(await cluster.client('sidecar'), { namespace: OWN_NAMESPACE });
  const parts = {
    kube,
    tokens: new TokenReviews(kube, AUDIENCE),
    access: new AccessReviews(kube),
    driver: DRIVER,
    log,
  };
  const beside = (upstream: Upstream) => [metadataService(parts, upstream)];
  const listen = { host: '127.0.0.1', port: 0 };
  door = await SessionSidecar.open({ kube, socketPath, driver: DRIVER, beside, log }, cluster.pair, listen);
  const address = `localhost:${door.port}`;
  const keys = new DoorKeys(cluster.pair, 60_000);
  advertisement = new Advertisement({
    kube,
    keys,
    driver: DRIVER,
    address,
    audience: AUDIENCE,
    overlapMs: 60_000,
    log,
  });
  expect(await advertisement.round()).toBe(true);
  client = CbtClient.overTls(door.port, cluster.pair.ca);
  token = await reader.token(account, AUDIENCE);
});
afterAll(async () => {
  client?.close();
  await door?.close(0);
  service?.forceShutdown();
  await cluster?.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  asked = [];
  answer = call => {
    call.write(reply(0));
    call.write(reply(8192));
    call.end();
  };
});

const allocated = (fields: Record<number, Value> = {}) =>
  client.call(ALLOCATED, { 1: token, 2: 'apps', 3: 'second', ...fields });
const delta = (fields: Record<number, Value> = {}) =>
  client.call(DELTA, { 1: token, 2: 'apps', 3: 'handle-of-first', 4: 'second', ...fields });

describe("the community's clients", () => {
  it('find the door by the SnapshotMetadataService, and read what is allocated', async () => {
    const { code, details, messages } = await reader.read({ ...reading, startingOffset: 4096, maxResults: 7 });
    expect(details).toBe('OK');
    expect(code).toBe('OK');
    expect(messages).toEqual([0n, 8192n].map(at => ({ type: 2n, capacity: BigInt(1 << 30), ranges: [[at, 4096n]] })));
    expect(asked).toEqual([{ snapshot_id: 'handle-of-second', starting_offset: 4096, max_results: 7, secrets: {} }]);
  });

  it.each([
    ['by its name', { prevSnapshotName: 'first' }, 'handle-of-first'],
    ['by its handle, which the cluster need not know any more', { prevSnapshotId: 'deleted-since' }, 'deleted-since'],
  ])('read what changed since a base, %s', async (_, base, base_snapshot_id) => {
    expect((await reader.read({ ...reading, ...base })).code).toBe('OK');
    expect(asked).toEqual([
      { base_snapshot_id, target_snapshot_id: 'handle-of-second', starting_offset: 0, max_results: 0, secrets: {} },
    ]);
  });

  it('are told that a base need not exist, where the definition has that field', async () => {
    const path = { name: DRIVER };
    type Told = { spec: Record<string, unknown>; metadata: { resourceVersion: string } };
    const pruned = await cluster.admin.get<Told>(METADATA_SERVICES, path);
    expect(pruned.spec).not.toHaveProperty('requireBaseSnapshotForDelta');
    // Kept as it is, though it is not all that there is to say.
    await advertisement.round();
    expect(await cluster.admin.get<Told>(METADATA_SERVICES, path)).toEqual(pruned);
    await cluster.defineBaseField();
    await vi.waitFor(
      async () => {
        await advertisement.round();
        const { spec } = await cluster.admin.get<Told>(METADATA_SERVICES, path);
        expect(spec).toMatchObject({ audience: AUDIENCE, requireBaseSnapshotForDelta: false });
      },
      { timeout: 20_000, interval: 200 },
    );
  });
});

describe('a call is refused as the sidecar of the community refuses it', () => {
  it.each([
    ['securityToken is missing', () => allocated({ 1: '' })],
    ['namespace parameter cannot be empty', () => allocated({ 2: '' })],
    ['snapshotName cannot be empty', () => allocated({ 3: '' })],
    ['securityToken is missing', () => delta({ 1: '' })],
    ['namespace parameter cannot be empty', () => delta({ 2: '' })],
    ['baseSnapshotId cannot be empty', () => delta({ 3: '' })],
    ['targetSnapshotName cannot be empty', () => delta({ 4: '' })],
  ])('%s', async (details, call) => {
    expect(await call()).toEqual({ code: 'INVALID_ARGUMENT', details, messages: [] });
    expect(asked).toEqual([]);
  });

  it('a token that is nobody’s, or for somebody else', async () => {
    const ofApi = await reader.token(account, 'another-audience');
    for (const wrong of ['nobody', `${token}x`, ofApi])
      for (const call of [allocated, delta])
        expect(await call({ 1: wrong })).toEqual({
          code: 'UNAUTHENTICATED',
          details: 'unauthenticated user',
          messages: [],
        });
    expect(asked).toEqual([]);
  });

  it('a token by which its owner asks the API server itself', async () => {
    const own = await reader.token(account, 'https://kubernetes.default.svc');
    expect((await allocated({ 1: own })).code).toBe('UNAUTHENTICATED');
  });

  it('who may not get VolumeSnapshots there, before anything is said of one', async () => {
    await cluster.apply([
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'nosy', namespace: 'backups' } },
    ]);
    const nosy = await reader.token({ namespace: 'backups', name: 'nosy' }, AUDIENCE);
    for (const name of ['second', 'nothing'])
      expect(await allocated({ 1: nosy, 3: name })).toEqual({
        code: 'PERMISSION_DENIED',
        details: expect.stringContaining('user does not have permissions to perform the operation: '),
        messages: [],
      });
    expect(asked).toEqual([]);
  });

  it.each([
    ['is not there', 'nothing', 'does not exist'],
    ['is not ready', 'unready', 'is not ready to use'],
    ['is bound to what is another’s', 'stolen', 'is not the one that'],
    ['is no name', '../second', 'no name'],
  ])('a VolumeSnapshot that %s', async (_, name, why) => {
    if (name === 'unready') await cluster.snapshot('apps', name, { ready: false });
    if (name === 'stolen') {
      await cluster.snapshot('secret', 'target');
      await cluster.snapshot('apps', name);
      await cluster.bind('apps', name, 'content-secret-handle-of-target');
    }
    for (const call of [() => allocated({ 3: name }), () => delta({ 4: name })])
      expect(await call()).toEqual({
        code: 'UNAVAILABLE',
        details: expect.stringMatching(new RegExp(`^failed to get VolumeSnapshot 'apps/${name}': .*${why}`)),
        messages: [],
      });
    expect(asked).toEqual([]);
  });

  it('a VolumeSnapshot of another driver', async () => {
    await cluster.snapshot('apps', 'strange', { driver: 'other.example.org' });
    expect(await allocated({ 3: 'strange' })).toEqual({
      code: 'INVALID_ARGUMENT',
      details: `VolumeSnapshot 'strange' does not belong to the CSI driver '${DRIVER}'`,
      messages: [],
    });
  });

  it.each([
    ['tokenreviews', 'failed to authenticate user: '],
    ['subjectaccessreviews', 'failed to authorize the user: '],
  ])('an API server that cannot be asked: %s', async (plural, words) => {
    const original = kube.create.bind(kube);
    const create = vi
      .spyOn(kube, 'create')
      .mockImplementation((resource, ...more) =>
        resource.plural === plural
          ? Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1:443'))
          : (original(resource, ...more) as never),
      );
    // Rights are remembered for some seconds: of another name nothing is.
    await cluster.snapshot('apps', `away-${plural}`);
    const { code, details } = await allocated({ 3: `away-${plural}` });
    create.mockRestore();
    expect({ code, details }).toEqual({ code: 'INTERNAL', details: `${words}the API server does not answer` });
  });
});

describe('a stream', () => {
  it('ends with the status of the service unchanged, after all that it has sent', async () => {
    answer = call => {
      call.write(reply(0));
      call.emit('error', { code: status.OUT_OF_RANGE, details: 'beyond the volume' });
    };
    const { code, details, messages } = await allocated();
    expect({ code, details, sent: messages.length }).toEqual({
      code: 'OUT_OF_RANGE',
      details: 'beyond the volume',
      sent: 1,
    });
  });

  it('without ranges is one without messages', async () => {
    answer = call => call.end();
    expect(await allocated()).toMatchObject({ code: 'OK', messages: [] });
  });

  it('of a VolumeSnapshot that is being deleted goes on being answered while it is there', async () => {
    const path = { namespace: 'apps', name: 'going' };
    await cluster.snapshot('apps', 'going');
    const found = await cluster.admin.get<{ metadata: object }>(VOLUME_SNAPSHOTS, path);
    const metadata = { ...found.metadata, finalizers: ['trivet.dev/in-use'] };
    await cluster.admin.replace(VOLUME_SNAPSHOTS, path, { ...found, metadata });
    await cluster.admin.delete(VOLUME_SNAPSHOTS, path);
    expect((await allocated({ 3: 'going' })).code).toBe('OK');
    const going = await cluster.admin.get<{ metadata: object }>(VOLUME_SNAPSHOTS, path);
    await cluster.admin.replace(VOLUME_SNAPSHOTS, path, { ...going, metadata: { ...going.metadata, finalizers: [] } });
    expect((await allocated({ 3: 'going' })).code).toBe('UNAVAILABLE');
  });

  it('is ended when the caller leaves', async () => {
    const left = new Promise<void>(resolve => {
      answer = call => {
        call.once('cancelled', () => resolve());
        call.write(reply(0));
      };
    });
    const stream = client.stream(ALLOCATED, { 1: token, 2: 'apps', 3: 'second' });
    stream.on('error', () => {});
    stream.once('data', () => stream.cancel());
    await left;
  });
});

it('asks the API server at most sixteen times at once, and refuses who comes when very many wait', async () => {
  let open = 0;
  let most = 0;
  let release!: () => void;
  const held = new Promise<void>(resolve => {
    release = resolve;
  });
  const slow = {
    create: async () => {
      most = Math.max(most, ++open);
      await held;
      open--;
      return { status: { authenticated: true, audiences: [AUDIENCE], user: { username: 'u' } } };
    },
  } as unknown as KubeClient;
  const reviews = new TokenReviews(slow, AUDIENCE);
  const asking = Array.from({ length: 272 }, () => reviews.userOf('t'));
  await expect(reviews.userOf('t')).rejects.toThrow();
  release();
  await Promise.all(asking);
  expect(most).toBe(16);
});

it.each([{ audiences: undefined }, { audiences: [] }, { audiences: ['another'] }])(
  'takes no token whose authenticator names %j',
  async named => {
    const answered = { status: { authenticated: true, ...named, user: { username: 'u' } } };
    const careless = { create: async () => answered } as unknown as KubeClient;
    expect(await new TokenReviews(careless, AUDIENCE).userOf('t')).toBeUndefined();
  },
);

it.skipIf(isReal)('asks four times for a call: whose token, what rights, the snapshot, its content', async () => {
  await cluster.snapshot('apps', 'counted');
  const ofDoor = () => cluster.api.calls.filter(({ user }) => user.endsWith(':trivet-session-sidecar'));
  const before = ofDoor().length;
  expect((await allocated({ 3: 'counted' })).code).toBe('OK');
  expect(
    ofDoor()
      .slice(before)
      .map(({ resource }) => resource),
  ).toEqual(['tokenreviews', 'subjectaccessreviews', 'volumesnapshots', 'volumesnapshotcontents']);
});
