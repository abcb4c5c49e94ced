import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Client,
  credentials,
  type handleServerStreamingCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { DRIVER, isReal, log, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import { SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from './resources.js';
import { RECONNECT_MS, SessionSidecar } from './session-sidecar.js';

/** The sidecar between a client of the text and a service as Trivet's, which here says what it was asked. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const proto = loadSync(join(PACKAGE_ROOT, 'proto', 'draft', 'snapshot-metadata.proto'), {
  keepCase: true,
  defaults: true,
  longs: Number,
});
const { SnapshotMetadata: METHODS } = proto as unknown as {
  SnapshotMetadata: Record<
    string,
    { path: string; requestSerialize(value: object): Buffer; responseDeserialize(bytes: Buffer): Reply }
  >;
};
interface Reply {
  volume_size_bytes: number;
  block_metadata: { byte_offset: number; size_bytes: number }[];
}

let cluster: SessionCluster;
let sidecar: SessionSidecar;
let service: Server;
let client: Client;
let folder: string;
let asked: Record<string, unknown>[] = [];
let answer: handleServerStreamingCall<object, object>;
let token: string;

const reply = (offset: number) => ({
  block_metadata_type: 1,
  volume_size_bytes: 1 << 30,
  block_metadata: [{ byte_offset: offset, size_bytes: 4096 }],
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-sidecar-'));
  const socketPath = join(folder, 'csi.sock');
  service = new Server();
  const handler: handleServerStreamingCall<object, object> = call => {
    asked.push(call.request as Record<string, unknown>);
    answer(call);
  };
  service.addService(proto.SnapshotMetadata as never, { GetAllocated: handler, GetDelta: handler });
  await new Promise<void>((resolve, reject) =>
    service.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), error =>
      error ? reject(error) : resolve(),
    ),
  );
  cluster = await SessionCluster.start();
  await cluster.manager();
  for (const name of ['first', 'second', 'other']) await cluster.snapshot('apps', name);
  await cluster.request('backup', 'apps', 'session', ['first', 'second']);
  token = (await cluster.decided('apps', 'session')).sessionToken!;
  const kube = Object.assign(await cluster.client('sidecar'), { namespace: OWN_NAMESPACE });
  sidecar = await SessionSidecar.open({ kube, socketPath, driver: DRIVER, log }, cluster.pair, {
    host: '127.0.0.1',
    port: 0,
  });
  client = new Client(`127.0.0.1:${sidecar.port}`, credentials.createSsl(Buffer.from(cluster.pair.ca)));
});
afterAll(async () => {
  client?.close();
  await sidecar?.close(0);
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

/** All messages, and how it ended. `service`: by whose path. */
function call(method: string, request: object, { under = 'SnapshotMetadata', metadata = new Metadata() } = {}) {
  const { requestSerialize, responseDeserialize } = METHODS[method]!;
  const stream = client.makeServerStreamRequest(
    `/${under}/${method}`,
    requestSerialize,
    responseDeserialize,
    { session_token: token, volume_id: 'volume-of-first', ...request },
    metadata,
  );
  const messages: Reply[] = [];
  stream.on('data', (message: Reply) => messages.push(message));
  return new Promise<{ messages: Reply[]; code: status; details: string }>(resolve => {
    let ended: ServiceError | undefined;
    stream.on('error', (error: ServiceError) => {
      ended = error;
    });
    stream.on('status', ({ code, details }) =>
      resolve({ messages, code: ended?.code ?? code, details: ended?.details ?? details }),
    );
  });
}

describe('the sidecar', () => {
  it.each(['SnapshotMetadata', 'csi.v1.SnapshotMetadata'])(
    'puts handles in the place of names, and passes on what comes back: %s',
    async under => {
      const { messages, code } = await call(
        'GetAllocated',
        { snapshot: 'first', starting_offset: 4096, max_results: 7 },
        { under },
      );
      expect(code).toBe(status.OK);
      expect(messages).toEqual(
        [reply(0), reply(8192)].map(each =>
          expect.objectContaining({ block_metadata: each.block_metadata, volume_size_bytes: 1 << 30 }),
        ),
      );
      expect(asked).toEqual([
        {
          session_token: token,
          volume_id: 'volume-of-first',
          snapshot: 'handle-of-first',
          starting_offset: 4096,
          max_results: 7,
        },
      ]);
    },
  );

  it('asks for changes between two, and knows the volume by its claim', async () => {
    const request = {
      volume_id: 'claim-of-second',
      base_snapshot: 'first',
      target_snapshot: 'second',
      starting_byte_offset: 1,
    };
    expect((await call('GetDelta', request)).code).toBe(status.OK);
    expect(asked).toEqual([
      {
        session_token: token,
        volume_id: 'volume-of-second',
        base_snapshot: 'handle-of-first',
        target_snapshot: 'handle-of-second',
        starting_byte_offset: 1,
        max_results: 0,
      },
    ]);
  });

  it.each([
    ['an unknown token', { session_token: 'a'.repeat(52) }, status.UNAUTHENTICATED],
    ['a path for a token', { session_token: '../snapshotsessiondatas' }, status.UNAUTHENTICATED],
    ['no token', { session_token: '' }, status.INVALID_ARGUMENT],
    ['no volume', { volume_id: '' }, status.INVALID_ARGUMENT],
    ['no snapshot', { snapshot: '' }, status.INVALID_ARGUMENT],
    ['a snapshot that the session does not cover', { snapshot: 'other' }, status.UNAUTHENTICATED],
    ['a handle', { snapshot: 'handle-of-first' }, status.UNAUTHENTICATED],
  ])('asks nobody for %s', async (_, request, code) => {
    expect((await call('GetAllocated', { snapshot: 'first', ...request })).code).toBe(code);
    expect(asked).toEqual([]);
  });

  it('says what the service says, after all that it has sent', async () => {
    answer = call => {
      call.write(reply(0));
      call.emit('error', { code: status.OUT_OF_RANGE, details: 'beyond the volume' });
    };
    const { messages, code, details } = await call('GetAllocated', { snapshot: 'first' });
    expect({ sent: messages.length, code, details }).toEqual({
      sent: 1,
      code: status.OUT_OF_RANGE,
      details: 'beyond the volume',
    });
  });

  it('ends its call when the caller leaves', async () => {
    const left = new Promise<void>(resolve => {
      answer = call => {
        call.once('cancelled', () => resolve());
        call.write(reply(0));
      };
    });
    const { requestSerialize, responseDeserialize } = METHODS.GetAllocated!;
    const stream = client.makeServerStreamRequest(
      '/SnapshotMetadata/GetAllocated',
      requestSerialize,
      responseDeserialize,
      { session_token: token, volume_id: 'v', snapshot: 'first' },
    );
    stream.on('error', () => {});
    stream.once('data', () => stream.cancel());
    await left;
  });

  it('holds back what a slow reader does not take', async () => {
    let written = 0;
    const message = {
      ...reply(0),
      block_metadata: Array.from({ length: 4_000 }, (_, n) => ({ byte_offset: 2 ** 40 + n * 8192, size_bytes: 4096 })),
    };
    const total = 500;
    answer = call => {
      const more = (): void => {
        while (written < total) {
          written++;
          if (!call.write(message)) return void call.once('drain', more);
        }
        call.end();
      };
      more();
    };
    const { requestSerialize, responseDeserialize } = METHODS.GetAllocated!;
    const stream = client.makeServerStreamRequest(
      '/SnapshotMetadata/GetAllocated',
      requestSerialize,
      responseDeserialize,
      { session_token: token, volume_id: 'v', snapshot: 'first' },
    );
    stream.on('error', () => {});
    await new Promise<void>(resolve => stream.once('readable', resolve));
    // What is on its way comes to rest.
    for (let before = -1; before !== written; ) {
      before = written;
      await new Promise(resolve => setTimeout(resolve, 300));
    }
    expect(written).toBeLessThan(total / 2);
    let seen = 0;
    stream.on('data', () => seen++);
    await new Promise(resolve => stream.once('end', resolve));
    expect(seen).toBe(total);
  });

  it('refuses what was deleted, or has its name from another', async () => {
    await cluster.admin.delete(SNAPSHOT_CONTENTS, { name: 'content-apps-handle-of-second' });
    expect(await call('GetAllocated', { snapshot: 'second' })).toMatchObject({
      code: status.NOT_FOUND,
      details: expect.stringContaining('has no VolumeSnapshotContent'),
    });
    await cluster.admin.delete(VOLUME_SNAPSHOTS, { namespace: 'apps', name: 'second' });
    expect((await call('GetAllocated', { snapshot: 'second' })).code).toBe(status.NOT_FOUND);
    await cluster.snapshot('apps', 'second', { handle: 'another' });
    expect((await call('GetAllocated', { snapshot: 'second' })).code).toBe(status.NOT_FOUND);
    expect(asked).toEqual([]);
  });

  it('takes no token whose time is over, whether its object is there or not', async () => {
    const found = (await cluster.allData()).find(({ metadata }) => metadata.name === token)!;
    const name = 'b'.repeat(52);
    const spec = { ...found.spec, expiryTime: new Date(Date.now() - 1_000).toISOString() };
    await cluster.admin.create(
      { api: 'cbt.storage.k8s.io/v1alpha1', plural: 'snapshotsessiondatas' },
      { namespace: OWN_NAMESPACE },
      { apiVersion: 'cbt.storage.k8s.io/v1alpha1', kind: 'SnapshotSessionData', metadata: { name }, spec },
    );
    expect((await call('GetAllocated', { snapshot: 'first', session_token: name })).code).toBe(status.UNAUTHENTICATED);
    expect(asked).toEqual([]);
  });

  it('asks for its socket again within seconds, however long no gateway was there', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const path = join(folder, 'away.sock');
    let tried = 0;
    // As the connector's own socket does.
    const away = createServer(socket => {
      tried++;
      socket.destroy();
    });
    await new Promise<void>(resolve => away.listen(path, resolve));
    const kube = Object.assign(await cluster.client('sidecar'), { namespace: OWN_NAMESPACE });
    const parts = { kube, socketPath: path, driver: DRIVER, log };
    const door = await SessionSidecar.open(parts, cluster.pair, { host: '127.0.0.1', port: 0 });
    const caller = new Client(`127.0.0.1:${door.port}`, credentials.createSsl(Buffer.from(cluster.pair.ca)));
    try {
      const { requestSerialize, responseDeserialize } = METHODS.GetAllocated!;
      const asked = { session_token: token, volume_id: 'v', snapshot: 'first' };
      const stream = caller.makeServerStreamRequest(
        '/SnapshotMetadata/GetAllocated',
        requestSerialize,
        responseDeserialize,
        asked,
      );
      const code = new Promise(resolve => stream.once('error', (error: ServiceError) => resolve(error.code)));
      stream.resume();
      expect(await code).toBe(status.UNAVAILABLE);
      for (let round = 0; round < 8; round++) {
        const before = tried;
        // The longest that it waits, and a fifth of it by chance.
        vi.advanceTimersByTime(RECONNECT_MS * 1.2);
        const until = performance.now() + 5_000;
        while (tried === before && performance.now() < until) await new Promise(resolve => setImmediate(resolve));
        expect(tried, `round ${round}`).toBeGreaterThan(before);
      }
    } finally {
      vi.useRealTimers();
      caller.close();
      await door.close(0);
      away.close();
    }
  });

  it('refuses what a gateway would leave waiting, and takes readers again when others have ended', async () => {
    const held: Parameters<typeof answer>[0][] = [];
    answer = call => held.push(call);
    // Of one connection the door takes no more either.
    const others = Array.from({ length: 2 }, () => {
      const options = { 'grpc.use_local_subchannel_pool': 1 };
      return new Client(`127.0.0.1:${sidecar.port}`, credentials.createSsl(Buffer.from(cluster.pair.ca)), options);
    });
    const [ours] = [client];
    try {
      const open = others.flatMap(each => {
        client = each;
        return Array.from({ length: 64 }, () => call('GetAllocated', { snapshot: 'first' }));
      });
      client = ours;
      await until('all are asked', () => held.length === 128);
      expect(await call('GetAllocated', { snapshot: 'first' })).toMatchObject({
        code: status.RESOURCE_EXHAUSTED,
        details: expect.stringContaining('try again'),
      });
      held.pop()!.end();
      await Promise.race(open);
      const taken = call('GetAllocated', { snapshot: 'first' });
      await until('it is asked', () => held.length === 128);
      for (const each of held) each.end();
      for (const each of [...open, taken]) expect((await each).code).toBe(status.OK);
    } finally {
      client = ours;
      for (const each of others) each.close();
    }
  });

  it.skipIf(isReal)('is UNAVAILABLE while the API server is away', async () => {
    await cluster.api.stop();
    expect((await call('GetAllocated', { snapshot: 'first' })).code).toBe(status.UNAVAILABLE);
    await cluster.api.start();
    expect((await call('GetAllocated', { snapshot: 'first' })).code).toBe(status.OK);
  });
});
