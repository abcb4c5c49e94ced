import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type RequestOptions, request, type Server } from 'node:https';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { log, SessionCluster } from '#test/support/kube/session-cluster';
import { until } from '#test/support/parts';
import type { KubeClient } from '../kube/kube-client.js';
import { AccessReviews } from './access-reviews.js';
import { CreatorRecords } from './creator-record.js';
import { SessionWebhook } from './webhook.js';

/** What anybody in the cluster can send to it. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
let cluster: SessionCluster;
let webhook: SessionWebhook;
let clock = 0;
/** Reviews that wait for `answer`. */
let asked: { user: string; answer(): void }[] = [];
let isHeld = false;
const kube = {
  create: (_: object, __: object, { spec: { user } }: { spec: { user: string } }) =>
    new Promise(resolve => {
      const answer = () => resolve({ status: { allowed: true } });
      if (isHeld) asked.push({ user, answer });
      else answer();
    }),
} as unknown as KubeClient;
const access = new AccessReviews(kube, () => clock);
const agent = new Agent({ keepAlive: true });

function open(): Promise<SessionWebhook> {
  const records = CreatorRecords.of(cluster.pair.key);
  const parts = { access, records: () => records, now: () => Date.now(), log };
  return SessionWebhook.open(parts, cluster.pair, { host: '127.0.0.1', port: 0 });
}

beforeAll(async () => {
  cluster = await SessionCluster.standIn();
  webhook = await open();
});
afterAll(async () => {
  agent.destroy();
  await webhook?.close();
  await cluster?.close();
});

function post(path: string, parts: readonly string[], headers: RequestOptions['headers'] = {}, port = webhook.port) {
  return new Promise<{ code: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method: 'POST', path, headers, agent };
    const call = request({ ...options, rejectUnauthorized: false }, reply => {
      let text = '';
      reply.on('data', chunk => {
        text += chunk;
      });
      reply.on('end', () => resolve({ code: reply.statusCode!, headers: reply.headers, text }));
    });
    call.once('error', reject);
    for (const part of parts) call.write(part);
    if (headers['content-length' as never] === undefined) call.end();
  });
}

const review = (username: string, snapshots: unknown, padding = ''): string =>
  JSON.stringify({
    request: {
      uid: randomUUID(),
      operation: 'CREATE',
      namespace: 'apps',
      userInfo: { username },
      object: { metadata: { annotations: { padding } }, spec: { snapshots } },
      oldObject: null,
    },
  });

describe('the webhook', () => {
  it('reads no more than 1 MiB, whether their number is said before or not', async () => {
    const said = await post('/validate', ['{'], { 'content-length': 1024 * 1024 + 1 });
    expect(said).toMatchObject({ code: 413, headers: { connection: 'close' } });
    const unsaid = await post('/validate', [review('a', ['s'], 'x'.repeat(1024 * 1024))], {});
    expect(unsaid.code).toBe(413);
  });

  it('reads an update of a request with all the names and annotations that Kubernetes takes', async () => {
    const names = Array.from({ length: 256 }, (_, n) => `${n}`.padStart(253, 's'));
    const { request } = JSON.parse(review('a', names, 'x'.repeat(256 * 1024)));
    const update = { ...request, operation: 'UPDATE', oldObject: request.object };
    expect((await post('/validate', [JSON.stringify({ request: update })])).code).toBe(200);
  });

  it.each(['/mutate', '/validate'])('refuses more than 256 names before it asks or signs: %s', async path => {
    const names = Array.from({ length: 257 }, (_, n) => `s${n}`);
    const { response } = JSON.parse((await post(path, [review('a', names)])).text);
    expect(response).toEqual({
      uid: expect.any(String),
      allowed: false,
      status: { code: 422, message: 'spec.snapshots: Too many: 257: must have at most 256 items' },
    });
  });

  it('keeps connections for longer than an API server does', async () => {
    expect((await post('/mutate', [review('a', ['s'])])).headers['keep-alive']).toBe('timeout=120');
  });

  it('has a bounded number of connections', async () => {
    const sockets = Array.from({ length: 260 }, () => connect(webhook.port, '127.0.0.1').on('error', () => {}));
    let refused = 0;
    for (const socket of sockets) socket.once('close', () => refused++);
    await until('some are refused', () => refused >= 4);
    const closed = sockets.map(
      socket => new Promise(resolve => (socket.closed ? resolve(0) : socket.once('close', resolve))),
    );
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
    await until('there is place again', () =>
      post('/mutate', [review('a', ['s'])]).then(
        () => true,
        () => false,
      ),
    );
  });

  it('reads sixteen at a time; the next one waits unread', async () => {
    let seen = 0;
    (webhook as unknown as { server: Server }).server.on('request', () => seen++);
    const options = { host: '127.0.0.1', port: webhook.port, method: 'POST', path: '/validate' };
    const slow = Array.from({ length: 16 }, () => request({ ...options, rejectUnauthorized: false, agent }));
    const ended = slow.map(call => new Promise(resolve => call.once('close', resolve).on('error', () => {})));
    for (const call of slow) call.write(' ');
    await until('they are there', () => seen === 16);
    isHeld = true;
    asked = [];
    const last = post('/validate', [review('last', ['s'])]);
    await until('it is there', () => seen === 17);
    slow[0]!.end(review('first', ['s']));
    await until('one is asked about', () => asked.length > 0);
    expect(asked.map(({ user }) => user)).toEqual(['first']);
    isHeld = false;
    asked[0]!.answer();
    expect((await last).code).toBe(200);
    for (const call of slow) call.destroy();
    await Promise.all(ended);
  });
});

describe('the webhook that stops', () => {
  it('answers what it was asked, takes nothing more, and waits for nobody who asks nothing', async () => {
    const own = await open();
    const silent = connect(own.port, '127.0.0.1').on('error', () => {});
    await once(silent, 'connect');
    isHeld = true;
    asked = [];
    const answer = post('/validate', [review('stops', ['s'])], {}, own.port);
    await until('it is asked about', () => asked.length > 0);
    const closed = own.close(30_000);
    const refused = await post('/mutate', [review('late', ['s'])], {}, own.port).catch(error => error);
    expect(refused).toMatchObject({ code: 'ECONNREFUSED' });
    isHeld = false;
    asked[0]!.answer();
    expect(await answer).toMatchObject({ code: 200, headers: { connection: 'close' } });
    await closed;
  }, 20_000);

  it('cuts what is not answered in time', async () => {
    const own = await open();
    isHeld = true;
    asked = [];
    const held = post('/validate', [review('cut', ['s'])], {}, own.port).catch(error => error);
    await until('it is asked about', () => asked.length > 0);
    await own.close(50);
    expect(await held).toMatchObject({ code: 'ECONNRESET' });
    isHeld = false;
    asked[0]!.answer();
  });
});

describe('a look at rights', () => {
  it('is of sixteen at a time, whoever asks', async () => {
    isHeld = true;
    asked = [];
    const looks = Array.from({ length: 50 }, (_, n) => access.denied({ username: `some-${n}` }, 'apps', ['s']));
    await new Promise(resolve => setImmediate(resolve));
    expect(asked).toHaveLength(16);
    isHeld = false;
    for (const { answer } of asked) answer();
    await Promise.all(looks);
  });

  it('is remembered for a while, of a bounded number, by a short key', async () => {
    const remembers = async (from: number, to: number) => {
      for (let n = from; n < to; n++) await access.denied({ username: `user-${n}` }, 'apps', ['s']);
    };
    clock = 100_000;
    await remembers(0, 2_100);
    expect(access.remembered).toBe(2_000);
    clock += 5_000;
    await remembers(2_000, 2_010);
    expect(access.remembered).toBe(2_000);
    clock += 6_000;
    await remembers(5_000, 5_001);
    expect(access.remembered).toBe(1);
    const keys = [...(access as unknown as { allowed: Map<string, number> }).allowed.keys()];
    expect(keys.every(key => key.length === 44)).toBe(true);
  });
});
