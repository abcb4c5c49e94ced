import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { EndpointSockets } from './endpoint-sockets.js';
import { interfaceHealth } from './interface-health.js';

let folder: string;
let doors: EndpointSockets;
const servers: Server[] = [];
const config = () => loadConfig([], { TRIVET_HOME: folder, TRIVET_CBT_LISTEN: 'none' });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'legs-'));
  doors = new EndpointSockets(config());
});
afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function listen(tenant: string, name: string, protocol: 'cosi' | 'csi'): Promise<Server> {
  const { path } = doors.place(tenant, name, protocol);
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer(socket => socket.end());
  servers.push(server);
  await new Promise<void>(resolve => server.listen(path, resolve));
  return server;
}

function know(tenant: string, name: string, problem: string | null = null, wanted = true, protocol = 'cosi' as const) {
  const of = { endpointId: `${tenant}/${name}`, tenantId: `id of ${tenant}`, tenantName: tenant, name, protocol };
  doors.set(of, { open: problem === null, problem, wanted });
}

const cosi = async (tenantId?: string) =>
  (await interfaceHealth(config(), doors, tenantId)).find(leg => leg.name === 'cosi')!;

it('is absent while no socket is registered, or all are suspended', async () => {
  expect(await cosi()).toMatchObject({ health: 'absent' });
  know('acme', 'one', 'it or its tenant is suspended', false);
  expect(await cosi()).toMatchObject({ health: 'absent' });
});

it('is ok when each socket answers, whichever gateway of this host has it', async () => {
  await listen('acme', 'one', 'cosi');
  know('acme', 'one');
  await listen('acme', 'two', 'cosi');
  know('acme', 'two', 'another process serves it');
  expect(await cosi()).toEqual({ name: 'cosi', health: 'ok', detail: 'its 2 doors answer' });
});

it('is degraded when some do not answer, down when none does, and says which and why', async () => {
  const server = await listen('acme', 'one', 'cosi');
  know('acme', 'one');
  know('acme', 'two', 'there is no group x');
  expect(await cosi()).toEqual({
    name: 'cosi',
    health: 'degraded',
    detail: 'endpoint acme/two: there is no group x',
  });
  await new Promise(resolve => server.close(resolve));
  // What the gateway believes of it does not count.
  const down = await cosi();
  expect(down.health).toBe('down');
  expect(down.detail).toContain(`endpoint acme/one: nobody answers at ${doors.place('acme', 'one', 'cosi').path}`);
  for (const name of ['three', 'four', 'five']) know('acme', name, 'x');
  expect((await cosi()).detail).toMatch(/; 2 more$/);
});

it('tells a tenant of its own sockets alone', async () => {
  await listen('acme', 'one', 'cosi');
  know('acme', 'one');
  know('beta', 'hidden', 'there is no group x');
  expect(await cosi('id of acme')).toMatchObject({ health: 'ok', detail: 'its door answers' });
  expect(await cosi('id of gamma')).toMatchObject({ health: 'absent' });
  expect(await cosi('id of beta')).toMatchObject({ health: 'down' });
});
