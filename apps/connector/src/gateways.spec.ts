import { createServer, type Server } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { Health } from '#platform/health/health';
import { createLogger } from '#platform/logging/log';
import { Gateways } from './gateways.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

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
