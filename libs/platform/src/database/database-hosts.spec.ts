import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

const TENANT = '01890000-0000-7000-8000-000000000000';
const WRITE = sql('write', 'UPDATE something');

/** A message of PostgreSQL's protocol: its type, its length without the type, its content. */
function message(type: string, content: Buffer | string): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(Buffer.byteLength(content) + 4, 1);
  return Buffer.concat([head, Buffer.from(content)]);
}
const AUTHENTICATED = message('R', '\0\0\0\0');
const READY = message('Z', 'I');
const TEXT = `${'\0'.repeat(9)}\x19${'\0'.repeat(8)}`;
const NAMES = ['version', 'file', 'number', 'declared', 'system'];
const COLUMNS = message('T', `\0${String.fromCharCode(NAMES.length)}${NAMES.map(name => `${name}\0${TEXT}`).join('')}`);
const row = (...fields: string[]) => {
  const told = fields.map(field => `\0\0\0${String.fromCharCode(field.length)}${field}`);
  return message('D', `\0${String.fromCharCode(fields.length)}${told.join('')}`);
};
const DONE = message('C', 'SELECT 1\0');
const REFUSED = message('E', 'SERROR\0VERROR\0C25006\0Mcannot execute UPDATE in a read-only transaction\0\0');

const NO_SCHEMA = message('E', 'SERROR\0VERROR\0C3F000\0Mschema "trivet" does not exist\0\0');

/** What a server of an address says of itself; it answers every statement with its timeline. */
class StandIn {
  timeline = 1;
  /** The cluster that it is, and the one that its database was declared for, and when. */
  system = '1';
  declared = { number: 0, system: '1' };
  standby = false;
  /** It has no schema of ours. */
  bare = false;
  /** It takes no writes, which it does not say when a connection is opened. */
  fenced = false;
  readonly sockets = new Set<Socket>();
  readonly listening = new Set<Socket>();
  private readonly server: Server = createServer(socket => this.serve(socket));

  async start(): Promise<number> {
    await new Promise<void>(resolve => this.server.listen(0, '127.0.0.1', resolve));
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise(resolve => this.server.close(resolve));
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.listening.delete(socket);
    });
    socket.once('data', () => {
      const hot = message('S', `in_hot_standby\0${this.standby ? 'on' : 'off'}\0`);
      socket.write(Buffer.concat([AUTHENTICATED, hot, READY]));
      socket.on('data', data => this.answer(socket, data));
    });
  }

  /** Of simple statements one each, of prepared ones what ends at a Sync. */
  private answer(socket: Socket, data: Buffer): void {
    for (let at = 0, writes = false; at < data.length; at += 1 + data.readInt32BE(at + 1)) {
      const type = String.fromCharCode(data[at]!);
      const text = data.toString('latin1', at + 5, at + 1 + data.readInt32BE(at + 1));
      writes ||= text.includes(WRITE.name);
      if (text.includes('LISTEN')) this.listening.add(socket);
      if (type !== 'Q' && type !== 'S') continue;
      if (this.bare && text.includes('database_standing')) {
        socket.write(Buffer.concat([NO_SCHEMA, READY]));
        continue;
      }
      const { number, system } = this.bare ? { number: 0, system: this.system } : this.declared;
      const file = row('18.0', `0000000${this.timeline}0000000000000001`, String(number), system, this.system);
      socket.write(Buffer.concat(writes && this.fenced ? [REFUSED, READY] : [COLUMNS, file, DONE, READY]));
      writes = false;
    }
  }
}

let old: StandIn;
let other: StandIn;
let database: Database;
let ports: number[];
beforeEach(async () => {
  [old, other] = [new StandIn(), new StandIn()];
  other.standby = true;
  ports = [await old.start(), await other.start()];
  database = await connect(ports);
});
const connect = (to: readonly number[]) => {
  const at = `${to.map(port => `127.0.0.1:${port}`).join()}/trivet`;
  return Database.connect({
    appUrl: `postgresql://app@${at}`,
    engineUrl: `postgresql://engine@${at}`,
    applicationName: 'trivet:test',
    poolSize: 2,
  });
};
afterEach(async () => {
  await database.close();
  await Promise.all([old.close(), other.close()]);
});

const promote = () => Object.assign(other, { timeline: 2, standby: false });
const write = () => database.withTenant(TENANT, tx => tx.query<{ file: string }>(WRITE));
/** The timeline of who took a write. */
const used = () =>
  write().then(
    ([found]) => found?.file.slice(0, 8),
    () => undefined,
  );

it('leaves a primary that lives on once one connection has found who was promoted', async () => {
  let connected = 0;
  const listener = database.listen(
    ['trivet_done'],
    () => {},
    () => connected++,
  );
  await expect.poll(() => connected).toBe(1);
  await write();
  await database.engine(WRITE);
  const [first] = [...old.sockets].filter(socket => !old.listening.has(socket));
  promote();
  // One of them breaks, of whichever pool; whoever asks next finds the other server.
  first!.destroy();
  await expect.poll(used).toBe('00000002');
  await expect.poll(() => old.sockets.size).toBe(0);
  await expect.poll(() => connected).toBe(2);
  expect(other.listening.size).toBe(1);
  expect((await database.engine<{ file: string }>(WRITE))[0]!.file).toMatch(/^00000002/);
  expect(old.sockets.size).toBe(0);
  await listener.stop();
});

it('leaves a primary that takes no writes any more', async () => {
  await write();
  await database.engine(WRITE);
  old.fenced = true;
  promote();
  await expect(write()).rejects.toMatchObject({ kind: 'unavailable' });
  expect((await write())[0]!.file).toMatch(/^00000002/);
  expect((await database.engine<{ file: string }>(WRITE))[0]!.file).toMatch(/^00000002/);
  await expect.poll(() => old.sockets.size).toBe(0);
});

describe('a database that was put back into a server of another cluster', () => {
  const restore = () => Object.assign(other, { system: '2', standby: false });
  const declare = () => Object.assign(other, { declared: { number: 1, system: '2' } });
  const gone = () => {
    for (const socket of old.sockets) socket.destroy();
    old.standby = true;
  };
  const said = async () => (await write().catch((error: Error) => error.cause)) as Error;

  it('is refused with words until somebody declares it, and used from then on, whatever its timeline', async () => {
    old.timeline = 3;
    await write();
    restore();
    gone();
    await expect.poll(async () => (await said()).message).toMatch(/:\d+ is of another server .* migrate --restored/);
    declare();
    await expect.poll(used).toBe('00000001');
    // The old one comes back.
    old.standby = false;
    for (const socket of other.sockets) socket.destroy();
    await expect.poll(used).toBe('00000001');
    await expect.poll(() => old.sockets.size).toBe(0);
    gone();
    other.standby = true;
    for (const socket of other.sockets) socket.destroy();
    await expect.poll(async () => (await said()).message).toMatch(/no server|takes no writes/);
    old.standby = false;
    await expect
      .poll(async () => (await said()).message)
      .toBe('the only server that takes writes is one that was replaced');
  });

  // Of the same servers in another order nothing is known yet.
  const anew = () => connect(ports.toReversed());
  const refused = { cause: { message: expect.stringMatching(/nobody has declared/) } };

  it('is refused by who starts and has never known the other one', async () => {
    restore();
    old.standby = true;
    await expect(anew()).rejects.toMatchObject(refused);
  });

  it('stands back while it is empty, for who starts beside the one that counts', async () => {
    Object.assign(restore(), { bare: true });
    const beside = await anew();
    try {
      await beside.withTenant(TENANT, tx => tx.query(WRITE));
      expect([...other.listening]).toEqual([]);
    } finally {
      await beside.close();
    }
  });

  it('is asked again by who has found it empty, and refused once a copy is in it', async () => {
    Object.assign(restore(), { bare: true });
    old.standby = true;
    const early = await anew();
    try {
      // No connection has broken: the next one asks all the same.
      other.bare = false;
      await expect(anew()).rejects.toMatchObject(refused);
    } finally {
      await early.close();
    }
  });

  it('is none of two that say each of themselves that they count, and of the same restore', async () => {
    restore();
    other.declared = { number: 0, system: '2' };
    await expect(anew()).rejects.toMatchObject(refused);
    declare();
    await expect
      .poll(() =>
        anew().then(
          one => one.close(),
          () => false,
        ),
      )
      .toBeUndefined();
    expect([...other.sockets]).not.toEqual([]);
  });
});
