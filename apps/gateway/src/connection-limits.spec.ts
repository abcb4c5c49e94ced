import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as secure } from 'node:tls';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { Health } from '#platform/health/health';
import { createLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';
import { CONNECTION_LIMITS } from './connection-limits.js';
import { createHttp } from './http.js';
import { listenHttps } from './https.js';

const limits = { handshakeMs: 200, headersMs: 300, requestMs: 600, lookEveryMs: 50 };
/** Far less than what Node would wait by itself. */
const ENDS_MS = 5_000;

const HEAD = 'GET /livez HTTP/1.1\r\nhost: here\r\n';
const BODY = 'POST /livez HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{';

describe('a connection on which nothing more comes', () => {
  let app: NestFastifyApplication;
  let home: string;
  let http: number;
  let https: number;
  const shutdown = new Shutdown({ deadlineMs: 5_000, exit: () => {} });
  beforeAll(async () => {
    app = await createHttp({ health: new Health() }, limits);
    await app.listen(0, '127.0.0.1');
    http = (app.getHttpServer().address() as AddressInfo).port;
    home = mkdtempSync(join(tmpdir(), 'limits-'));
    https = await freePort();
    const config = loadConfig([], { TRIVET_HOME: home, TRIVET_HTTPS_LISTEN: `127.0.0.1:${https}` });
    // Whoever is served gets no answer here: only the limits end his connection.
    await listenHttps(() => {}, { config, log: createLogger('limits'), shutdown }, { begin: () => {} }, limits);
  });
  afterAll(async () => {
    await shutdown.stop('test');
    await app.close();
    rmSync(home, { recursive: true, force: true });
  });

  const overTcp = (port: number, text: string) => connect(port, '127.0.0.1').once('connect', sending(text));
  const overTls = (text: string) =>
    secure({ port: https, host: '127.0.0.1', rejectUnauthorized: false }).once('secureConnect', sending(text));
  const sending = (text: string) =>
    function send(this: Socket) {
      if (text !== '') this.write(text);
    };

  it.each([
    ['HTTP, silent', () => overTcp(http, '')],
    ['HTTP, in the middle of the headers', () => overTcp(http, HEAD)],
    ['HTTP, in the middle of the body', () => overTcp(http, BODY)],
    ['HTTPS, without a handshake', () => overTcp(https, '')],
    ['HTTPS, in the middle of the handshake', () => overTcp(https, '\x16\x03\x01')],
    ['HTTPS, silent after it', () => overTls('')],
    ['HTTPS, in the middle of the headers', () => overTls(HEAD)],
  ])('ends: %s', async (_, open) => {
    const socket = open();
    socket.on('error', () => {});
    socket.resume();
    const began = performance.now();
    const timer = setTimeout(() => socket.destroy(), 2 * ENDS_MS);
    await new Promise(resolve => socket.once('close', resolve));
    clearTimeout(timer);
    expect(performance.now() - began).toBeLessThan(ENDS_MS);
  });

  it('is kept for seconds, and not for minutes', () => {
    const { handshakeMs, headersMs, requestMs, lookEveryMs } = CONNECTION_LIMITS;
    for (const ms of [handshakeMs, headersMs, requestMs]) expect(ms + lookEveryMs).toBeLessThanOrEqual(31_000);
  });
});

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net');
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}
