import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { createLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';
import { RealDriver } from '#test/csp/driver-client';
import { openRoom, type Room } from '#test/csp/in-process-target';
import { freePort } from '#test/support/free-port';
import { listenHttps } from '../../apps/gateway/src/https.js';

const MIB = 1024 * 1024;

/** Outside its cluster the driver comes over TLS, below the context path, and names no backend but by the address. */
describe('the CSP room over TLS', () => {
  let room: Room;
  let home: string;
  let port: number;
  const shutdown = new Shutdown({ deadlineMs: 5_000, exit: () => {} });
  beforeAll(async () => {
    room = await openRoom();
    home = mkdtempSync(join(tmpdir(), 'csp-tls-'));
    port = await freePort();
    const config = loadConfig([], { TRIVET_HOME: home, TRIVET_HTTPS_LISTEN: `127.0.0.1:${port}` });
    const { routing } = room.app.getHttpAdapter().getInstance() as unknown as FastifyInstance;
    await listenHttps(routing, { config, log: createLogger('csp-tls'), shutdown }, { begin: () => {} });
  });
  afterAll(async () => {
    await shutdown.stop('test');
    await room.close();
    rmSync(home, { recursive: true, force: true });
  });

  it('serves the driver', async () => {
    const array = `https://127.0.0.1:${port}/csp`;
    const driver = new RealDriver({ array, backend: '127.0.0.1', username: room.username, password: room.password });
    const node = { name: 'n', uuid: 'host-1', iqns: [room.initiator], networks: [] };
    const volume = await driver.createVolume('pvc', MIB);
    expect(await driver.publish(volume.id, node)).toMatchObject({ access_protocol: 'iscsi' });
    expect(await driver.expand(volume.id, 2 * MIB)).toBe(2 * MIB);
    await driver.unpublish(volume.id, node);
    await driver.deleteVolume(volume.id);
    expect(await driver.volumes()).toEqual([]);
    expect([...room.sessions.live.values()]).toMatchObject([{ arrayIp: '' }]);
  });

  it('is trusted by who was given its certificate', async () => {
    const ca = readFileSync(join(home, 'tls', 'certificate.pem'));
    const status = (trusted: Buffer | undefined) =>
      new Promise((resolve, reject) => {
        const path = '/csp/containers/v1/volumes';
        const call = request({ host: '127.0.0.1', servername: 'localhost', port, path, ca: trusted, agent: false });
        call.once('response', reply => resolve(reply.resume().statusCode));
        call.once('error', reject);
        call.end();
      });
    expect(await status(ca)).toBe(401);
    await expect(status(undefined)).rejects.toThrow(/self-signed/);
  });
});
