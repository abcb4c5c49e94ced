import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type OnReadOpts, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Gateway, Gateways, Reached } from './gateways.js';
import { Inflow } from './inflow.js';
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
  const { near, far } = await connected();
  return [near, far];
}

/** As a gateway is reached. */
async function reachedPair(): Promise<[reached: Reached, far: Socket]> {
  const inflow = new Inflow();
  const { near, far } = await connected({ onread: inflow.onread });
  return [{ remote: near, inflow: inflow.from(near) }, far];
}

async function connected(more: { onread?: OnReadOpts } = {}): Promise<{ near: Socket; far: Socket }> {
  const server = createServer();
  const path = join(folder, `${++made}.sock`);
  await new Promise<void>(done => server.listen(path, done));
  const near = connect({ path, ...more });
  const [far] = (await once(server, 'connection')) as [Socket];
  open.push(server, near, far);
  for (const end of [near, far]) end.on('error', () => {});
  return { near, far };
}

/** A gateway that answers with that connection, or does not answer. */
function gateway(connection?: Reached) {
  const seen = { asked: 0, tunnels: new Set() };
  const answer = async (): Promise<Reached | undefined> => {
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
    const [[caller, local], [reached, far]] = [await pair(), await reachedPair()];
    const [deaf, good] = [gateway(), gateway(reached)];
    caller.write('before');
    await carry(local, inThatOrder(deaf, good), 'name');
    expect(String((await once(far, 'data'))[0])).toBe('before');
    far.end('answer');
    expect(String((await once(caller, 'data'))[0])).toBe('answer');
    await once(caller, 'close');
    expect([deaf.seen.asked, good.seen.asked, good.seen.tunnels.size]).toEqual([1, 1, 0]);
  });

  it('ends when its gateway dies, and is given to no other one', async () => {
    const [[caller, local], [reached, far]] = [await pair(), await reachedPair()];
    const [dies, other] = [gateway(reached), gateway((await reachedPair())[0])];
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
    const [[caller, local], [reached, far]] = [await pair(), await reachedPair()];
    await carry(local, inThatOrder(gateway(reached)), 'name');
    caller.pause();
    const chunk = Buffer.alloc(1 << 20);
    for (let n = 0; n < 16; n++) far.write(chunk);
    while (local.writableLength === 0) await turn();
    for (let n = 0; n < 1_000; n++) await turn();
    // What is not taken stays with the sender.
    expect(far.writableLength).toBeGreaterThan(0);
    expect(local.writableLength).toBeLessThan(1 << 20);
    expect(reached.remote.readableLength).toBe(0);
  });

  it('gets every byte in its place, however it comes and is taken', async () => {
    const [[caller, local], [reached, far]] = [await pair(), await reachedPair()];
    const sent = Buffer.from(Array.from({ length: 3_000_000 }, (_, n) => (n * 7 + (n >> 8)) & 255));
    const pieces: Buffer[] = [];
    for (let at = 0, length = 1; at < sent.length; at += length, length = (length * 5 + 3) % 40_000)
      pieces.push(sent.subarray(at, at + length));
    // Before there is anybody to take it.
    far.write(pieces[0]!);
    await reached.inflow.begun;
    await carry(local, inThatOrder(gateway(reached)), 'name');
    const got: Buffer[] = [];
    caller.on('data', chunk => {
      got.push(chunk);
      if (got.length % 7 !== 0) return;
      caller.pause();
      setImmediate(() => caller.resume());
    });
    for (const piece of pieces.slice(1)) if (!far.write(piece)) await once(far, 'drain');
    far.end();
    await once(caller, 'close');
    expect(Buffer.concat(got).equals(sent)).toBe(true);
  });

  it('ends a gateway that speaks on before it was asked anything', async () => {
    const [reached, far] = await reachedPair();
    const closed = new Promise<void>(resolve => far.once('close', () => resolve()));
    far.write(Buffer.alloc(1 << 20));
    await closed;
    expect(reached.remote.destroyed).toBe(true);
  });
});
