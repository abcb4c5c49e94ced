import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A message of PostgreSQL's protocol: its type, its length without the type, its content. */
function message(type: string, ...content: (string | number)[]): Buffer {
  const parts = content.map(part => {
    if (typeof part === 'string') return Buffer.from(part);
    const number = Buffer.alloc(4);
    number.writeInt32BE(part);
    return number;
  });
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const AUTHENTICATED = message('R', 0);
const READY = message('Z', 'I');
const FATAL = message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
/** One row of one text. */
const ROW = Buffer.concat([
  message('T', '\0\x01', 'version\0', 0, '\0\0', 25, '\0\x04', -1, '\0\0'),
  message('D', '\0\x01', 4, '18.0'),
  message('C', 'SELECT 1\0'),
]);

/** It ends each connection in the packet that says that it is ready, as one does that is killed right then. */
let killed = false;
let server: Server;
let url: string;
const sockets = new Set<Socket>();
const uncaught: unknown[] = [];
const notice = (error: unknown) => uncaught.push(error);
let others: NodeJS.UncaughtExceptionListener[];

const ready = (socket: Socket, ...before: Buffer[]) =>
  socket.write(Buffer.concat([...before, READY, ...(killed ? [FATAL] : [])]));

beforeEach(async () => {
  killed = false;
  server = createServer(socket => {
    sockets.add(socket);
    let started = false;
    socket.on('error', () => {});
    socket.on('data', data => {
      if (!started) ready(socket, AUTHENTICATED);
      // A simple query, or what a prepared one ends with.
      else if (data[0] === 'Q'.charCodeAt(0)) ready(socket, ROW);
      started = true;
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  url = `postgresql://trivet@127.0.0.1:${(server.address() as AddressInfo).port}/trivet`;
  others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', notice);
});
afterEach(async () => {
  process.off('uncaughtException', notice);
  for (const listener of others) process.on('uncaughtException', listener);
  for (const socket of sockets) socket.destroy();
  await new Promise(resolve => server.close(resolve));
});

it('hears that PostgreSQL was killed while it hands a connection out', async () => {
  const database = await Database.connect({ appUrl: url, applicationName: 'trivet:test', poolSize: 1 });
  killed = true;
  // The pool's idle connection goes, and each that follows ends as it begins.
  for (const socket of sockets) socket.destroy();
  const inside = () =>
    database.withTenant('01890000-0000-7000-8000-000000000000', tx => tx.query(sql('one', 'SELECT 1')));
  for (let n = 0; n < 3; n++) await expect(inside()).rejects.toMatchObject({ kind: 'unavailable' });
  await expect(database.call(sql('one', 'SELECT 1'), [])).rejects.toMatchObject({ kind: 'unavailable' });
  await database.close();
  expect(uncaught).toEqual([]);
});
