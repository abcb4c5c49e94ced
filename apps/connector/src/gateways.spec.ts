import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { HealthImplementation } from 'grpc-health-check';
import { afterEach, expect, it } from 'vitest';
import { Health } from '#platform/health/health';
import { createLogger } from '#platform/logging/log';
import { GATEWAY_NAME } from '#protocol/enrolment';
import { GrpcEndpoint } from '#protocol/grpc-endpoint';
import { listenTls } from '#protocol/tls-listener';
import { makeSelfSigned } from '../../gateway/src/self-signed.js';
import { type Gateway, Gateways } from './gateways.js';
import type { Identity } from './identity.js';

const servers: Server[] = [];
const closes: (() => unknown)[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  for (const close of closes.splice(0).reverse()) await close();
});

/** Of gateway and connector alike. */
async function selfSigned(): Promise<Identity> {
  const pem = await makeSelfSigned([GATEWAY_NAME]);
  const at = pem.indexOf('-----BEGIN PRIVATE KEY');
  const certificate = pem.slice(0, at);
  return { key: pem.slice(at), certificate, authority: certificate };
}

/** Answers nobody: its process is gone, and its host or a proxy before it still takes connections. */
async function dead(): Promise<{ port: number; asked: () => number }> {
  let asked = 0;
  const server = createServer(socket => {
    asked++;
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return { port: (server.address() as { port: number }).port, asked: () => asked };
}

/** Two gateways behind one address: what hangs is what was connected so far. */
async function service({ key, certificate }: Identity): Promise<{ port: number; hang(): void }> {
  const health = new HealthImplementation({ '': 'SERVING' });
  const { endpoint, listener } = await GrpcEndpoint.open([], { health, options: {} }, take =>
    listenTls({ key, cert: certificate }, { host: '127.0.0.1', port: 0 }, take),
  );
  const open: Socket[] = [];
  const front = createServer(near => {
    const far = connect(listener.port, '127.0.0.1');
    for (const end of [near, far]) end.on('error', () => {});
    open.push(near);
    near.pipe(far).pipe(near);
    near.once('close', () => far.destroy());
  });
  await new Promise<void>(done => front.listen(0, '127.0.0.1', done));
  closes.push(() => {
    for (const near of open) near.destroy();
    front.close();
    endpoint.release();
    return endpoint.close(0);
  });
  const hang = () => {
    for (const near of open) near.unpipe().pause();
  };
  return { port: (front.address() as AddressInfo).port, hang };
}

/** The one at that port. */
function gatewayAt(port: number, identity: Identity): Gateway {
  const gateways = new Gateways([{ host: '127.0.0.1', port }], () => identity, createLogger('test'));
  closes.push(() => gateways.stop());
  return gateways.inOrder()[0]!;
}

/** A connection of a sidecar that goes through it. */
function tunnelOf({ tunnels }: Gateway): Socket {
  const tunnel = new Socket();
  tunnels.add(tunnel);
  return tunnel;
}

it('asks a gateway that did not answer after all others, until a check finds it well', async () => {
  const [gone, other] = [await dead(), await dead()];
  const identity = { key: '', certificate: '', authority: '' };
  const addresses = [gone, other].map(({ port }) => ({ host: '127.0.0.1', port }));
  const gateways = new Gateways(addresses, () => identity, createLogger('test'));
  const first = gateways.inOrder()[0]!;
  expect(first.address.port).toBe(gone.port);
  expect(await first.connect('endpoint.tenant.trivet.internal')).toBeUndefined();
  expect(gone.asked()).toBe(1);
  expect(gateways.inOrder().map(({ address }) => address.port)).toEqual([other.port, gone.port]);
  gateways.stop();
});

it('says as the reason of readiness that no gateway is ready', async () => {
  const identity = { key: '', certificate: '', authority: '' };
  const gateways = new Gateways([{ host: '127.0.0.1', port: 1 }], () => identity, createLogger('test'));
  const health = new Health();
  health.addCheck('gateways', () => gateways.problem);
  const gateway = gateways.inOrder()[0]!;
  const { checks } = await health.readiness();
  expect(checks.gateways).toEqual({ state: 'failed', reason: 'no gateway is ready' });
  gateway.health = 'ready';
  expect((await health.readiness()).checks.gateways).toEqual({ state: 'ok' });
  gateways.stop();
});

it('asks another gateway behind the same address after one that hangs, and what goes through it goes on', async () => {
  const identity = await selfSigned();
  const { port, hang } = await service(identity);
  const gateway = gatewayAt(port, identity);
  await gateway.check();
  expect(gateway.health).toBe('ready');
  const tunnel = tunnelOf(gateway);
  hang();
  await gateway.check();
  expect(gateway.health).toBe('not_ready');
  await gateway.check();
  expect(gateway.health).toBe('ready');
  expect(tunnel.destroyed).toBe(false);
}, 20_000);

it('ends what goes through a dead gateway once, and nothing that begins later', async () => {
  const { port } = await dead();
  const gateway = gatewayAt(port, await selfSigned());
  const before = tunnelOf(gateway);
  for (let n = 0; n < 2; n++) await gateway.check();
  expect(before.destroyed).toBe(false);
  await gateway.check();
  expect(before.destroyed).toBe(true);
  const later = tunnelOf(gateway);
  await gateway.check();
  expect(later.destroyed).toBe(false);
});
