import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programFile } from '#platform/package-root';
import { AdminHouse, type HouseTenant } from '#test/admin/admin-house';
import { CosiClient } from '#test/cosi/client';
import { DaemonProcess } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

/** A connector as it runs in a cluster, between clients as sidecars are and two gateways. */
let house: AdminHouse;
let acme: HouseTenant;
const ports: number[] = [];
const gateways: DaemonProcess[] = [];
const connectors: DaemonProcess[] = [];
const clients: CosiClient[] = [];

const startGateway = async (at: number): Promise<DaemonProcess> => {
  const folder = join(house.appliance.folder, `sockets-${at}`);
  mkdirSync(folder, { recursive: true });
  const env = { TRIVET_CLUSTER_LISTEN: `127.0.0.1:${ports[at]}`, TRIVET_SOCKET_DIR: folder };
  gateways[at] = await house.appliance.gateway(env);
  return gateways[at];
};

beforeAll(async () => {
  house = await AdminHouse.create({ env: { TRIVET_ENDPOINT_CHECK_MS: '200' } });
  ({ acme } = house);
  // One socket of the configuration serves one gateway.
  delete house.appliance.env.COSI_ENDPOINT;
  const body = { name: 'k8s', protocol: 'cosi', backend: 'fake' };
  const made = await house.call(house.root.admin, 'POST', '/tenants/acme/endpoints', { body });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  for (const at of [0, 1]) {
    ports[at] = await freePort();
    await startGateway(at);
  }
  await house.appliance.worker();
}, 120_000);
afterAll(async () => {
  for (const client of clients) client.close();
  await Promise.all(connectors.map(connector => connector.stop('SIGKILL')));
  await house?.close();
});

interface Started {
  connector: DaemonProcess;
  home: string;
  socket: string;
  cluster: string;
}

let made = 0;
/** `token`: of one that is used again. */
async function startConnector(token?: string): Promise<Started & { token: string }> {
  const cluster = `c${++made}`;
  const home = join(house.appliance.folder, cluster);
  mkdirSync(join(home, 'sockets'), { recursive: true });
  const reply = await house.call(acme.admin, 'POST', '/tenants/acme/clusters/join-tokens', { body: { cluster } });
  const given = token ?? String(reply.body.token);
  writeFileSync(join(home, 'token'), `${given}\n`, { mode: 0o600 });
  const socket = join(home, 'sockets', 'cosi.sock');
  return { connector: await run(home, socket), home, socket, cluster, token: given };
}

async function run(home: string, socket: string): Promise<DaemonProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [programFile('connector')], {
    env: {
      PATH: '/usr/bin:/bin',
      NODE_NO_WARNINGS: '1',
      TRIVET_HOME: home,
      TRIVET_GATEWAYS: ports.map(at => `127.0.0.1:${at}`).join(),
      TRIVET_CONNECTOR_SOCKETS: `k8s=unix://${socket}`,
      TRIVET_CONNECTOR_LISTEN: `127.0.0.1:${port}`,
      TRIVET_JOIN_TOKEN_FILE: join(home, 'token'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const connector = new DaemonProcess('connector', child, `http://127.0.0.1:${port}`);
  connectors.push(connector);
  return connector;
}

const clientOf = (socket: string): CosiClient => {
  const client = new CosiClient(socket);
  clients.push(client);
  return client;
};

/** How many calls about each bucket the gateways say that they have answered. */
function answered(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const gateway of gateways)
    for (const [, name] of gateway.log().matchAll(/"resource":"(load-[^"]+)"/g))
      counts.set(name!, (counts.get(name!) ?? 0) + 1);
  return counts;
}

describe('a connector', () => {
  it('joins once, keeps its key for itself, and comes back with it', async () => {
    const { connector, home, socket } = await startConnector();
    await connector.ready();
    expect((await clientOf(socket).call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    const file = join(home, 'connector', 'identity.pem');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const before = readFileSync(file, 'utf8');
    await connector.stop();
    const again = await run(home, socket);
    await again.ready();
    expect((await clientOf(socket).call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('ends with a line for people when its join token was used already', async () => {
    const { connector, token } = await startConnector();
    await connector.ready();
    const second = await startConnector(token);
    expect(await second.connector.ended()).toMatchObject({ code: 78 });
    expect(second.connector.log()).toContain('TRIVET_JOIN_TOKEN_FILE: this join token is not known, was used already');
  });

  it('passes the deadline and big messages on', async () => {
    const { connector, socket } = await startConnector();
    await connector.ready();
    const client = clientOf(socket);
    const big = await client.call('v1alpha1', 'DriverCreateBucket', { name: 'x'.repeat(6 * 1024 * 1024) });
    expect(big.code).toBe('INVALID_ARGUMENT');
    const huge = await client.call('v1alpha1', 'DriverCreateBucket', { name: 'x'.repeat(9 * 1024 * 1024) });
    expect(huge.code).toBe('RESOURCE_EXHAUSTED');
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
  });

  it('loses no call and repeats none while gateways are killed and come back', async () => {
    const { connector, socket } = await startConnector();
    await connector.ready();
    let isOver = false;
    const attempts = new Map<string, number>();
    const codes = new Map<string, number>();
    const caller = async (number: number): Promise<void> => {
      const client = clientOf(socket);
      for (let n = 0; !isOver; n++) {
        const name = `load-${number}-${n}`;
        for (let code = ''; code !== 'OK'; ) {
          attempts.set(name, (attempts.get(name) ?? 0) + 1);
          ({ code } = await client.call('v1alpha1', 'DriverCreateBucket', { name }));
          codes.set(code, (codes.get(code) ?? 0) + 1);
          if (code !== 'OK' && code !== 'UNAVAILABLE') throw new Error(`${name}: ${code}`);
        }
      }
    };
    const callers = Array.from({ length: 8 }, (_, number) => caller(number));
    const done = (): number => codes.get('OK') ?? 0;
    for (const at of [0, 1]) {
      const before = done();
      await until('calls go on', () => done() > before + 20);
      await gateways[at]!.stop('SIGKILL');
      const killed = done();
      await until('calls go on through the other one', () => done() > killed + 20);
      const log = gateways[at]!;
      await startGateway(at);
      gateways.push(log);
    }
    isOver = true;
    await Promise.all(callers);
    const counts = answered();
    expect(counts.size).toBeGreaterThan(attempts.size / 2);
    for (const [name, count] of counts) expect(count, name).toBeLessThanOrEqual(attempts.get(name) ?? 0);
    const [{ count }] = (await house.query<{ count: string }>(
      "SELECT count(*) FROM trivet.bucket WHERE tenant_id = $1 AND name LIKE 'load-%' AND state = 'ready'",
      [acme.id],
    )) as [{ count: string }];
    expect(Number(count)).toBe(attempts.size);
    expect(codes.get('UNAVAILABLE') ?? 0).toBeGreaterThan(0);
  }, 120_000);

  it('serves nobody any more when its cluster is revoked', async () => {
    const { connector, socket, cluster } = await startConnector();
    await connector.ready();
    const client = clientOf(socket);
    expect((await client.call('v1alpha1', 'DriverGetInfo', {})).code).toBe('OK');
    const path = `/tenants/acme/clusters/${cluster}/revoke`;
    expect((await house.call(acme.admin, 'POST', path, { body: {} })).status).toBe(200);
    const before = performance.now();
    await until('calls fail', async () => (await client.call('v1alpha1', 'DriverGetInfo', {})).code === 'UNAVAILABLE');
    expect(performance.now() - before).toBeLessThan(5_000);
    await until('it says that it is not ready', async () => (await connector.checks()).gateways?.state !== 'ok');
  });
});
