import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Gateway, Gateways } from './gateways.js';
import { carry } from './tunnel.js';

let folder: string;
let made = 0;
const open: (Server | Socket)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-tunnel-'));
});
afterEach(() => {
  for (const thing of open.splice(0)) 'destroy' in thing ? thing.destroy() : thing.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Both ends of a connection. */
async function pair(): Promise<[near: Socket, far: Socket]> {
  const server = createServer();
  const path = join(folder, `${++made}.sock`);
  await new Promise<void>(done => server.listen(path, done));
  const near = connect(path);
  const [far] = (await once(server, 'connection')) as [Socket];
  open.push(server, near, far);
  for (const end of [near, far]) end.on('error', () => {});
  return [near, far];
}

/** A gateway that answers with that connection, or does not answer. */
function gateway(connection?: Socket) {
  const seen = { asked: 0, tunnels: new Set() };
  const answer = async (): Promise<Socket | undefined> => {
    seen.asked++;
    return connection;
  };
  const it = { tunnels: seen.tunnels, connect: answer } as unknown as Gateway;
  return { seen, it };
}
const inThatOrder = (...all: { it: Gateway }[]): Gateways =>
  ({ inOrder: () => all.map(({ it }) => it) }) as unknown as Gateways;

describe('a connection of a sidecar', () => {
  it('goes to the next gateway while none has spoken, with all that was sent', async () => {
    const [[caller, local], [remote, far]] = [await pair(), await pair()];
    const [deaf, good] = [gateway(), gateway(remote)];
    caller.write('before');
    await carry(local, inThatOrder(deaf, good), 'name');
    expect(String((await once(far, 'data'))[0])).toBe('before');
    far.end('answer');
    expect(String((await once(caller, 'data'))[0])).toBe('answer');
    await once(caller, 'close');
    expect([deaf.seen.asked, good.seen.asked, good.seen.tunnels.size]).toEqual([1, 1, 0]);
  });

  it('ends when its gateway dies, and is given to no other one', async () => {
    const [[caller, local], [remote, far]] = [await pair(), await pair()];
    const [dies, other] = [gateway(remote), gateway((await pair())[0])];
    caller.resume();
    caller.write('a call');
    await carry(local, inThatOrder(dies, other), 'name');
    await once(far, 'data');
    const closed = once(caller, 'close');
    far.destroy();
    await closed;
    expect(other.seen.asked).toBe(0);
  });

  it('ends when no gateway answers', async () => {
    const [caller, local] = await pair();
    const closed = once(caller, 'close');
    caller.resume();
    await carry(local, inThatOrder(gateway(), gateway()), 'name');
    await closed;
  });

  it('holds no more of a stream than buffers, however much its caller leaves', async () => {
    const [[caller, local], [remote, far]] = [await pair(), await pair()];
    await carry(local, inThatOrder(gateway(remote)), 'name');
    caller.pause();
    const chunk = Buffer.alloc(1 << 20);
    for (let n = 0; n < 16; n++) far.write(chunk);
    while (!local.writableNeedDrain) await turn();
    for (let n = 0; n < 1_000; n++) await turn();
    // What is not taken stays with the sender.
    expect(far.writableLength).toBeGreaterThan(0);
    expect(local.writableLength).toBeLessThan(1 << 20);
    expect(remote.readableLength).toBeLessThan(1 << 20);
  });
});
