import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { StreamEnd } from '#cbt/stream-end';
import { AdminHouse } from '#test/admin/admin-house';
import { CbtClient } from '#test/cbt/client';
import { message, type Value } from '#test/cbt/wire';
import type { RealDriver } from '#test/csp/driver-client';
import { TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

/**
 * A suspended tenant is refused on every interface, by a gateway that was not told: what it remembers of logins and what it
 * streams must not outlive the suspension by more than two seconds. COSI, call by call: suspended.spec.ts.
 */
const WITHIN_MS = 2_000;
const SIDECAR = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';
const CSI = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

let appliance: TestAppliance;
let driver: RealDriver;
let cspToken: string;
let adminToken: string;
let sessionToken: string;
let snapshot: string;
const clients: CbtClient[] = [];
let overTls: CbtClient;
let overSocket: CbtClient;
let csiSocket: string;
let cbtPort: number;
let caCert: string;

beforeAll(async () => {
  cbtPort = await freePort();
  appliance = await TestAppliance.create({ backend: 'fake', block: 'fake' });
  csiSocket = join(appliance.folder, 'csi', 'csi.sock');
  mkdirSync(join(appliance.folder, 'csi'));
  await appliance.gateway({ TRIVET_CBT_LISTEN: `127.0.0.1:${cbtPort}`, TRIVET_CSI_ENDPOINT: `unix://${csiSocket}` });
  await appliance.worker();
  driver = appliance.driver();
  await driver.login();
  await until('the pool was looked at', async () => (await query('SELECT FROM trivet.pool')).length > 0);
  const volume = await driver.createVolume('pvc-1', 16 * MIB);
  snapshot = (await driver.createSnapshot(volume.id, 'monday')).id;
  cspToken = (await login()).token!;
  const session = await http('POST', '/cbt/v1/sessions', { 'x-auth-token': cspToken }, { snapshots: [snapshot] });
  sessionToken = /"(?:token|session_token|sessionToken)":"([^"]+)"/.exec(session.text)![1]!;
  adminToken = `trivet_${randomBytes(32).toString('base64url')}`;
  await query(
    `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
     SELECT tenant_id, gen_random_uuid(), id, 'token', 'test', role, $1 FROM trivet.tenant_user WHERE name = 'csp'`,
    [createHash('sha256').update(adminToken).digest()],
  );
  caCert = readFileSync(join(appliance.folder, 'tls', 'certificate.pem'), 'utf8');
  overTls = CbtClient.overTls(cbtPort, caCert);
  overSocket = CbtClient.overSocket(csiSocket);
  clients.push(overTls, overSocket);
}, 60_000);
afterAll(async () => {
  for (const client of clients) client.close();
  await appliance?.close();
});

const query = <Row = Record<string, unknown>>(text: string, params: unknown[] = []) =>
  appliance.database.query<Row>(text, params);

async function http(method: string, path: string, headers: Record<string, string> = {}, body?: object) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  const reply = await fetch(`${appliance.cspUrl}${path}`, { method, headers: { ...headers, ...type }, ...sent });
  const text = await reply.text();
  return {
    status: String(reply.status),
    text,
  };
}
async function login(password = CSP_PASSWORD) {
  const reply = await http('POST', '/containers/v1/tokens', {}, { username: 'csp', password, array_ip: '' });
  return { ...reply, token: /"session_token":"([^"]+)"/.exec(reply.text)?.[1] };
}
const grpc = async (call: Promise<{ code: string; details?: string; message?: string }>) => {
  const { code, details, message } = await call;
  return { status: code, text: details ?? message ?? '' };
};

interface Leg {
  name: string;
  call(): Promise<{ status: string; text: string }>;
  active: string;
  suspended: string[];
}

const legs: Leg[] = [
  {
    name: 'COSI',
    call: () => grpc(appliance.client().call('v1alpha1', 'DriverCreateBucket', { name: 'photos' })),
    active: 'OK',
    suspended: ['PERMISSION_DENIED', 'UNAVAILABLE'],
  },
  {
    name: 'CSP, reading',
    call: () => http('GET', '/containers/v1/volumes', { 'x-auth-token': cspToken }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'CSP, changing',
    call: () =>
      http(
        'POST',
        '/containers/v1/hosts',
        { 'x-auth-token': cspToken },
        { uuid: 'h', name: 'h', iqns: ['iqn.2026-11.test:h'], networks: [] },
      ),
    active: '200',
    suspended: ['403'],
  },
  { name: 'CSP, logging in', call: () => login(), active: '200', suspended: ['403'] },
  { name: 'CSP, logging in with a wrong password', call: () => login('wrong'), active: '401', suspended: ['401'] },
  {
    name: 'snapshot sessions',
    call: () => http('GET', '/cbt/v1/sessions', { 'x-auth-token': cspToken }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'changed blocks over REST',
    call: () => http('GET', `/cbt/v1/snapshots/${snapshot}/allocated`, { 'x-auth-token': cspToken }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'changed blocks over REST, with a session',
    call: () => http('GET', `/cbt/v1/snapshots/${snapshot}/allocated`, { authorization: `Bearer ${sessionToken}` }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'changed blocks over TLS',
    call: () => grpc(overTls.call(SIDECAR, { 1: sessionToken, 2: 'default', 3: snapshot })),
    active: 'OK',
    suspended: ['PERMISSION_DENIED'],
  },
  {
    name: 'changed blocks over the CSI socket',
    call: () => grpc(overSocket.call(CSI, { 1: snapshot })),
    active: 'OK',
    suspended: ['PERMISSION_DENIED', 'UNAVAILABLE'],
  },
  {
    name: 'the admin API',
    call: () => http('GET', '/api/v1/tenants/default/volumes', { authorization: `Bearer ${adminToken}` }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'the admin API, logging in',
    call: () => http('POST', '/api/v1/session', {}, { username: 'csp', password: CSP_PASSWORD }),
    active: '200',
    suspended: ['403'],
  },
  {
    name: 'the admin API, logging in with a wrong password',
    call: () => http('POST', '/api/v1/session', {}, { username: 'csp', password: 'wrong' }),
    active: '401',
    suspended: ['401'],
  },
];
/** A gRPC stream whose reader takes nothing before `end`, which gives its status: grpc-js would read on by itself. */
function unreadStream(session: ClientHttp2Session, path: string, request: Record<number, Value>) {
  session.on('error', () => {});
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const body = message(request);
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
  stream.on('error', () => {});
  let status: string | undefined;
  stream.on('trailers', trailers => {
    status = String(trailers['grpc-status']);
  });
  return {
    begun: once(stream, 'response'),
    async end() {
      const closed = once(stream, 'close');
      stream.resume();
      await closed;
      return status ?? `reset with ${stream.rstCode}`;
    },
  };
}

/** The same over REST; `end` gives the last of what came. */
async function unreadLines(path: string) {
  const call = get(`${appliance.cspUrl}${path}`, { headers: { 'x-auth-token': cspToken } });
  const [reply] = (await once(call, 'response')) as [IncomingMessage];
  return {
    async end() {
      let last = '';
      try {
        for await (const chunk of reply.setEncoding('utf8')) last = (last + chunk).slice(-200);
      } catch {
        // It breaks off; the last line says why.
      }
      return last;
    },
  };
}

const setState = (state: string) => query("UPDATE trivet.tenant SET state = $1 WHERE name = 'default'", [state]);
const forgive = () => query('DELETE FROM trivet.login_throttle');

describe('a suspended tenant', () => {
  afterEach(forgive);

  it.each(legs)(
    '$name: $active before, $suspended within 2 s, and $active again',
    async ({ call, active, suspended }) => {
      // What a gateway remembers of the suspension before may last a moment.
      await until('it is served', async () => (await call()).status === active, 10_000);
      await setState('suspended');
      const since = Date.now();
      try {
        const told = await until(
          'it is refused',
          async () => {
            const answer = await call();
            return suspended.includes(answer.status) ? answer : undefined;
          },
          WITHIN_MS + 1_000,
        );
        expect(Date.now() - since).toBeLessThan(WITHIN_MS + 500);
        if (told.status === '403' || told.status === 'PERMISSION_DENIED') expect(told.text).toContain('suspended');
      } finally {
        await setState('active');
      }
      await forgive();
      await until('it is served again', async () => (await call()).status === active, 10_000);
    },
  );

  it('has its running streams of changed blocks ended, on every face', async () => {
    // Walked, not read from the index: as many ranges as no reader takes before the tenant is suspended.
    await query("UPDATE trivet.queue SET paused = true WHERE class = 'index'");
    const ranges = 2_000_000;
    const served = () => driver.createVolume('long', 16 * GIB).catch(() => undefined);
    const volume = await until('it is served', served, 10_000);
    const { id } = await driver.createSnapshot(volume.id, 'long');
    const pattern = { capacityBytes: 16 * GIB, ranges, every: 8_192, length: 4_096 };
    appliance.fakeBlock!.synthetic(id, pattern);
    const made = await http('POST', '/cbt/v1/sessions', { 'x-auth-token': cspToken }, { snapshots: [id] });
    const token = /"(?:token|session_token|sessionToken)":"([^"]+)"/.exec(made.text)![1]!;
    const gateway = appliance.process('gateway');
    const open = async () =>
      [...(await gateway.metrics()).matchAll(/^trivet_cbt_streams_open(?:\{[^}]*\})? (\d+)$/gm)]
        .map(([, count]) => Number(count))
        .reduce((sum, count) => sum + count, 0);
    await until('the socket is open again', async () => (await overSocket.call(CSI, { 1: snapshot })).code === 'OK');
    await until('the streams before are over', async () => (await open()) === 0);

    const tls = connectHttp2(`https://localhost:${cbtPort}`, { ca: caCert });
    const socket = connectHttp2('http://localhost', { createConnection: () => connectSocket(csiSocket) });
    try {
      const streams = [
        unreadStream(tls, SIDECAR, { 1: token, 2: 'default', 3: id }),
        unreadStream(socket, CSI, { 1: id }),
      ];
      const rest = await unreadLines(`/cbt/v1/snapshots/${id}/allocated`);
      await Promise.all(streams.map(({ begun }) => begun));
      expect(await open()).toBe(3);
      await setState('suspended');
      const since = Date.now();
      // Nobody has read on meanwhile, so nothing but the suspension ends them.
      await until('the gateway has ended them', async () => (await open()) === 0, WITHIN_MS + 1_000);
      expect(Date.now() - since).toBeLessThan(WITHIN_MS + 500);
      expect(await Promise.all(streams.map(stream => stream.end()))).toEqual(['14', '14']);
      const lines = await rest.end();
      expect(lines).toMatch(/\{"error":"the tenant was suspended.*\}\n$/);
    } finally {
      await setState('active');
      await query("UPDATE trivet.queue SET paused = false WHERE class = 'index'");
      for (const session of [tls, socket]) session.destroy();
    }
  }, 60_000);

  it('has what was accepted before carried out to its end', async () => {
    // The socket of the configuration opens again a moment after it is resumed.
    const create = (name: string) => appliance.client().call('v1alpha1', 'DriverCreateBucket', { name });
    await until('COSI is served', async () => (await create('before')).code === 'OK');
    appliance.fake!.addFault({ method: 'createBucket', resource: 'slow', mode: 'delay', delayMs: 1_000 });
    const created = create('slow');
    await until(
      'it runs',
      async () => (await appliance.operations("resource_name = 'slow' AND state = 'running'")).length > 0,
    );
    await setState('suspended');
    try {
      await created;
      await until(
        'it is done',
        async () => (await appliance.operations("resource_name = 'slow' AND state = 'succeeded'")).length > 0,
      );
    } finally {
      await setState('active');
    }
  });

  it('has no snapshots taken by its templates until it is resumed', async () => {
    await query(
      `INSERT INTO trivet.protection_template (tenant_id, id, name, schedules)
       SELECT id, gen_random_uuid(), 'mine', '[{"name": "weekly", "everyMinutes": 10080, "atMinutes": 0, "retain": 2}]'
         FROM trivet.tenant WHERE name = 'default'`,
    );
    const made = () => driver.createVolume('protected', 16 * MIB, { protection_template: 'mine' });
    const { id } = await until('it is served again', () => made().catch(() => undefined));
    await setState('suspended');
    try {
      await query("UPDATE trivet.volume_protection SET next_run_at = now() - interval '1 minute'");
      expect(await query('SELECT FROM trivet.protection_due()')).toEqual([]);
    } finally {
      await setState('active');
    }
    const taken = () => driver.snapshotsOf(id).catch(() => []);
    await until('it is taken', async () => (await taken()).length === 1);
  });
});

/** In this process, where a stream can be held open as long as it takes. */
describe('streams', () => {
  let house: AdminHouse;
  beforeAll(async () => {
    house = await AdminHouse.create();
  });
  afterAll(() => house?.close());

  it('of a suspended tenant end within 2 s, those of others go on', async () => {
    const { streams } = house.parts;
    const [ours, theirs] = [streams.open(), streams.open()];
    await streams.admit(ours, house.acme.id);
    await streams.admit(theirs, house.beta.id);
    await house.query("UPDATE trivet.tenant SET state = 'suspended' WHERE name = 'acme'");
    await until('it has ended', () => ours.signal.aborted, WITHIN_MS);
    expect((ours.signal.reason as StreamEnd).reason).toBe('closed');
    expect(theirs.signal.aborted).toBe(false);
    const another = streams.open();
    await expect(streams.admit(another, house.acme.id)).rejects.toThrow('tenant acme is suspended');
    await house.query("UPDATE trivet.tenant SET state = 'active' WHERE name = 'acme'");
    await until('it may stream again', () =>
      streams
        .admit(another, house.acme.id)
        .then(() => true)
        .catch(() => false),
    );
    for (const stream of [ours, theirs, another]) streams.close(stream);
  });

  it('are no more than the tenant may have at a gateway', async () => {
    const { streams } = house.parts;
    await house.query("INSERT INTO trivet.tenant_quota (tenant_id, key, value) VALUES ($1, 'streams', 3)", [
      house.beta.id,
    ]);
    const opened = Array.from({ length: 10 }, () => streams.open());
    // The limit is known after 2 s at the latest.
    await until('the limit counts', async () => {
      const outcomes = await Promise.allSettled(opened.map(stream => streams.admit(stream, house.beta.id)));
      const admitted = outcomes.filter(({ status }) => status === 'fulfilled').length;
      const [refused] = outcomes.filter(({ status }) => status === 'rejected');
      for (const stream of opened.splice(0)) streams.close(stream);
      opened.push(...Array.from({ length: 10 }, () => streams.open()));
      if (admitted !== 3) return false;
      expect((refused as PromiseRejectedResult).reason).toMatchObject({ kind: 'resource_exhausted', retry: 'later' });
      return true;
    });
    const acmes = streams.open();
    await streams.admit(acmes, house.acme.id);
    for (const stream of [...opened, acmes]) streams.close(stream);
  });
});
