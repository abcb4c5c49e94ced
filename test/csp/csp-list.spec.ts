import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StorageError } from '#platform/errors';
import { PACKAGE_ROOT } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { HttpClient } from '#test/csp/client';
import { expectRefusal } from '#test/csp/conformance/context';
import { openRoom, type Room } from '#test/csp/in-process-target';
import type { ListServer } from '#test/csp/list-server';
import { manyVolumes, PAGE } from '#test/csp/many-volumes';

const MIB = 1024 * 1024;

describe('lists', () => {
  let room: Room;
  let http: HttpClient;
  let token: string;
  let pages: number;
  let ended: boolean;
  beforeEach(async () => {
    room = await openRoom();
    http = new HttpClient(room.url);
    const { username, password } = room;
    token = (await http.ask('POST', '/containers/v1/tokens', { body: { username, password } })).body.session_token;
    pages = 0;
    ended = false;
  });
  afterEach(async () => {
    http.close();
    await room.close();
  });

  /** So many volumes, made as they are asked for; `failAt`: this page does not come. */
  function provide(count: number, failAt?: number): void {
    room.storage.listVolumes = async function* () {
      try {
        yield* manyVolumes(count, () => {
          if (pages === failAt) throw new StorageError('unavailable', 'the database does not answer');
          pages++;
        });
      } finally {
        ended = true;
      }
    };
  }
  const list = () => http.ask('GET', '/containers/v1/volumes', { headers: { 'x-auth-token': token } });

  /** Asks on a connection that is read by nobody. */
  async function deafClient(): Promise<Socket> {
    const socket = createConnection(Number(new URL(room.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.pause();
    socket.write(`GET /containers/v1/volumes HTTP/1.1\r\nHost: x\r\nx-auth-token: ${token}\r\n\r\n`);
    return socket;
  }

  /** The number of pages read, when it has stopped to grow. */
  async function settledPages(): Promise<number> {
    let last = -1;
    await vi.waitFor(
      () => {
        const before = last;
        last = pages;
        expect(pages).toBeGreaterThan(0);
        expect(pages).toBe(before);
      },
      { interval: 200, timeout: 20_000 },
    );
    return pages;
  }

  it.each([0, 1, PAGE, PAGE + 1, 1_000])('of %i volumes are whole', async count => {
    provide(count);
    const { status, body, headers } = await list();
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(body.map(({ name }: { name: string }) => name)).toEqual(Array.from({ length: count }, (_, n) => `pvc-${n}`));
    expect(ended).toBe(true);
  });

  it('wait for a client that does not read, and hold little meanwhile', async () => {
    const total = 1_000_000;
    provide(total);
    const before = process.memoryUsage().rss;
    const socket = await deafClient();
    const read = await settledPages();
    expect(read).toBeLessThan(total / PAGE / 10);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MIB);
    socket.destroy();
    await vi.waitFor(() => expect(ended).toBe(true));
  });

  it('grow the process by less than 64 MiB, however long they are', async () => {
    const main = join(PACKAGE_ROOT, 'dist', 'test', 'csp', 'list-server.js');
    const server = fork(main, ['100000'], { execArgv: [...NODE_FLAGS] });
    try {
      const [door] = (await once(server, 'message')) as [ListServer];
      const size = async () => {
        server.send('size');
        return ((await once(server, 'message')) as [{ now: number; most: number }])[0];
      };
      const body = JSON.stringify({ username: door.username, password: door.password });
      const headers = { 'content-type': 'application/json' };
      const login = await fetch(`${door.url}/containers/v1/tokens`, { method: 'POST', body, headers });
      const { session_token } = (await login.json()) as { session_token: string };
      const { now: before } = await size();
      const reply = await fetch(`${door.url}/containers/v1/volumes`, { headers: { 'x-auth-token': session_token } });
      let bytes = 0;
      for await (const chunk of reply.body!) bytes += chunk.length;
      expect(bytes).toBeGreaterThan(200 * MIB);
      expect((await size()).most - before).toBeLessThan(64 * MIB);
    } finally {
      server.kill('SIGKILL');
    }
  });

  it('that fail before they begin are an ordinary refusal', async () => {
    provide(1_000, 0);
    expectRefusal(await list(), 503, 'database');
    expect(ended).toBe(true);
  });

  it('that fail later break off, and never look whole', async () => {
    provide(1_000, 5);
    await expect(list()).rejects.toThrow(/aborted|hang up|ECONNRESET/);
    expect(ended).toBe(true);
  });

  it('whose client leaves end', async () => {
    provide(1_000_000);
    const socket = await deafClient();
    await settledPages();
    expect(ended).toBe(false);
    socket.destroy();
    await vi.waitFor(() => expect(ended).toBe(true));
  });
});
