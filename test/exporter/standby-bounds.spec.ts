import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { encode, encodeKeys, IMMEDIATE, makeHeader, NO_TAG, Opcode, PduReader } from '#backends/tgt/iscsi-pdu';
import { closeStandbyPortals, openStandbyPortals } from '#backends/tgt/standby-portals';
import { freePort } from '#test/support/free-port';

const OF_ADDRESS = 64;
const CONNECTIONS = 256;
const UNITS = 1_000;
const BYTES = 65_536;
const BOUND_MS = 15_000;

let port: number;
let portal: string;
let targets: string[];
const sockets: Socket[] = [];
const guide = { servedAt: async () => undefined, targetsOf: async () => targets };
beforeEach(async () => {
  targets = [];
  port = await freePort();
  portal = `127.0.0.1:${port}`;
  await openStandbyPortals([portal], guide);
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await closeStandbyPortals([portal]);
});

/** From 127.0.0.`from`: it is answered, or hung up on. */
async function caller(from = 1): Promise<{ socket: Socket; ended: Promise<void>; isAnswered: boolean }> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: `127.0.0.${from}` });
  sockets.push(socket);
  socket.on('error', () => {});
  const ended = new Promise<void>(resolve => socket.once('close', () => resolve()));
  socket.write(LOGIN);
  return { socket, ended, isAnswered: await isAnswered(socket, ended) };
}

/** A reset is an end like another one. */
function isAnswered(socket: Socket, ended: Promise<void>): Promise<boolean> {
  const answered = new Promise<boolean>(resolve => socket.once('data', () => resolve(true)));
  return Promise.race([answered, ended.then(() => false)]);
}

function request(opcode: number, flags: number, keys: Record<string, string>): Buffer {
  const data = encodeKeys(keys);
  const header = makeHeader(opcode, flags, 7, data.length);
  header.writeUInt32BE(NO_TAG, 20);
  return encode(header, data);
}

const LOGIN = request(Opcode.login | IMMEDIATE, 0x80 | (1 << 2) | 3, {
  InitiatorName: 'iqn.2026-01.example:host',
  SessionType: 'Discovery',
});

it('has as many callers of one address as it may, and goes on with others', async () => {
  for (let n = 0; n < OF_ADDRESS; n++) expect((await caller()).isAnswered).toBe(true);
  expect((await caller()).isAnswered).toBe(false);
  expect((await caller(2)).isAnswered).toBe(true);
  sockets[0]!.destroy();
  await vi.waitFor(async () => expect((await caller()).isAnswered).toBe(true));
});

it('has as many callers as it may', async () => {
  for (let n = 0; n < CONNECTIONS; n++) expect((await caller(1 + (n % 8))).isAnswered).toBe(true);
  expect((await caller(9)).isAnswered).toBe(false);
});

it('hangs up on who asks on and on, by requests and by bytes', async () => {
  const asks = async (unit: Buffer, most: number): Promise<number> => {
    const { socket, ended } = await caller();
    for (let answers = 0; answers < most; answers++) {
      socket.write(unit);
      if (!(await isAnswered(socket, ended))) return answers;
    }
    return most;
  };
  const short = request(Opcode.text, 0x80, {});
  expect(short.length * UNITS).toBeLessThan(BYTES);
  expect(await asks(short, UNITS + 100)).toBe(UNITS - 1);
  const long = request(Opcode.text, 0x80, { SendTargets: 'x'.repeat(4_000) });
  expect(await asks(long, 20)).toBe(Math.floor((BYTES - LOGIN.length) / long.length));
});

it('hangs up on who says nothing, after a login as well', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { ended, socket } = await caller();
  vi.advanceTimersByTime(BOUND_MS - 1);
  const reader = new PduReader();
  socket.write(request(Opcode.text, 0x80, {}));
  reader.push((await once(socket, 'data'))[0]);
  expect(reader.next()).toBeDefined();
  vi.advanceTimersByTime(1);
  await ended;
});

it('answers by the guide that it was given last', async () => {
  const { socket } = await caller();
  socket.destroy();
  await openStandbyPortals([portal], { ...guide, targetsOf: async () => ['iqn.2026-01.dev.trivet:new'] });
  const next = await caller();
  next.socket.write(request(Opcode.text, 0x80, { SendTargets: 'All' }));
  const [answer] = await once(next.socket, 'data');
  expect(answer.toString()).toContain('iqn.2026-01.dev.trivet:new');
});
