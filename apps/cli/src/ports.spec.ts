import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Home } from './home.js';
import { DEFAULT_PORTS, findFreePort, isFree, Ports } from './ports.js';

let folder: string;
let servers: Server[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ports-'));
  servers = [];
});
afterEach(async () => {
  for (const server of servers) await new Promise(resolve => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

async function occupy(port: number): Promise<void> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
}

describe('the ports of a home', () => {
  it('are kept', async () => {
    const home = Home.open(join(folder, 'home'));
    const port = await new Ports(home, false).take('redis');
    expect(await new Ports(home).take('redis')).toBe(port);
    expect(JSON.parse(readFileSync(home.file('ports.json'), 'utf8'))).toEqual({ redis: port });
  });

  it('are others when a stranger sits there, below those of outgoing connections', async () => {
    const home = Home.open(join(folder, 'home'));
    const port = await new Ports(home, false).take('redis');
    await occupy(port);
    expect(await isFree(port)).toBe(false);
    const ports = new Ports(home);
    const next = await ports.take('redis');
    expect(next).not.toBe(port);
    expect(ports.moved).toEqual([{ name: 'redis', from: port, to: next }]);
    for (const found of [next, await findFreePort()]) {
      expect(found).toBeGreaterThanOrEqual(Math.min(20_000, DEFAULT_PORTS.redis));
      expect(found).toBeLessThan(32_768);
    }
  });

  it('never meet in two homes that start at the same moment', async () => {
    const ports = ['one', 'other'].map(name => new Ports(Home.open(join(folder, name))));
    const [one, other] = await Promise.all(ports.map(each => each.take('redis')));
    expect(other).not.toBe(one);
    // Its own again, as after a part that did not start.
    expect(await ports[0]!.take('redis')).toBe(one);
  });

  it('never meet in one home', async () => {
    const ports = new Ports(Home.open(join(folder, 'home')), false);
    const names = Object.keys(DEFAULT_PORTS) as (keyof typeof DEFAULT_PORTS)[];
    const taken = await Promise.all(names.map(name => ports.take(name)));
    expect(new Set(taken).size).toBe(names.length);
  });
});
