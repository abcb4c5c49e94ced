import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLogger } from '#platform/logging/log';
import type { Gateway, Gateways } from './gateways.js';
import { Inflow } from './inflow.js';
import { Sockets } from './sockets.js';

let folder: string;
let gateway: Server;
/** What it was asked. */
let calls: Socket[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-sockets-'));
  calls = [];
  gateway = createServer(socket => {
    socket.write('hello');
    socket.on('data', () => calls.push(socket)).on('error', () => {});
  });
  await new Promise<void>(done => gateway.listen(0, '127.0.0.1', done));
});
afterEach(() => {
  for (const call of calls) call.destroy();
  gateway.close();
  rmSync(folder, { recursive: true });
});

/** A socket, and the connection of a sidecar to it with a call under way. */
async function called() {
  const { port } = gateway.address() as AddressInfo;
  const reached = async () => {
    const inflow = new Inflow();
    const remote = connect({ port, host: '127.0.0.1', onread: inflow.onread });
    inflow.from(remote);
    await inflow.begun;
    return { remote, inflow };
  };
  const only = { tunnels: new Set(), connect: reached } as unknown as Gateway;
  const sockets = new Sockets('tenant', { inOrder: () => [only] } as unknown as Gateways, createLogger('test'));
  const path = join(folder, 'csi.sock');
  await sockets.serve('csi', path, undefined);
  const caller = connect(path);
  await once(caller, 'data');
  caller.write('a call');
  while (calls.length === 0) await new Promise(resolve => setImmediate(resolve));
  return { sockets, path, caller };
}

it('lets calls under way end when it stops, and takes no more connections', async () => {
  const { sockets, path, caller } = await called();
  const closed = sockets.close(60_000);
  const [refused] = await once(connect(path), 'error');
  expect(refused).toMatchObject({ code: 'ENOENT' });
  calls[0]!.write('an answer');
  expect(String((await once(caller, 'data'))[0])).toBe('an answer');
  caller.end();
  await closed;
});

it('cuts connections that are open for longer than it may wait', async () => {
  const { sockets, caller } = await called();
  const cut = once(caller, 'close');
  await sockets.close(50);
  await cut;
});
