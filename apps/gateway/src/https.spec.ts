import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, loadConfig } from '#platform/config/config';
import { createLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';
import { listenHttps, reloading } from './https.js';
import { makeSelfSigned } from './self-signed.js';

const log = createLogger('https-test');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

describe('the HTTPS door', () => {
  let home: string;
  let port: number;
  let shutdown: Shutdown;
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), 'https-'));
    port = await freePort();
    shutdown = new Shutdown({ deadlineMs: 5_000, exit: () => {} });
  });
  afterEach(async () => {
    await shutdown.stop('test');
    rmSync(home, { recursive: true, force: true });
  });

  const open = (env: Record<string, string> = {}) => {
    const config = loadConfig([], { TRIVET_HOME: home, TRIVET_HTTPS_LISTEN: `127.0.0.1:${port}`, ...env });
    return listenHttps((_request, reply) => reply.end('served'), { config, log, shutdown }, { begin: () => {} });
  };
  /** The answer's text and the names of the certificate that it came with. */
  const get = async (agent?: Agent) => {
    const call = request({ host: '127.0.0.1', port, path: '/', rejectUnauthorized: false, agent });
    call.end();
    const [reply] = await once(call, 'response');
    const { subjectaltname } = reply.socket.getPeerCertificate();
    let text = '';
    for await (const chunk of reply) text += chunk;
    return { text, names: String(subjectaltname) };
  };

  it('serves the same as the other one, by a certificate of its own', async () => {
    await open({ TRIVET_CBT_PUBLIC_ADDRESS: 'trivet.example.test:8745' });
    // One certificate for both doors, so both make it alike.
    const names = expect.stringMatching(/DNS:localhost\b.*DNS:trivet\.example\.test/);
    expect(await get()).toEqual({ text: 'served', names });
  });

  it('ends though a client keeps its connection', async () => {
    await open();
    const agent = new Agent({ keepAlive: true });
    await get(agent);
    const started = performance.now();
    await shutdown.stop('test');
    expect(performance.now() - started).toBeLessThan(4_000);
    await expect(get()).rejects.toThrow('ECONNREFUSED');
    agent.destroy();
  });

  it('is closed by none', async () => {
    await open({ TRIVET_HTTPS_LISTEN: 'none' });
    await expect(get()).rejects.toThrow('ECONNREFUSED');
  });

  it('says which address is taken', async () => {
    const other = createServer().listen(port, '127.0.0.1');
    await once(other, 'listening');
    await expect(open()).rejects.toBeInstanceOf(ConfigError);
    await expect(open()).rejects.toThrow(`TRIVET_HTTPS_LISTEN: cannot listen on 127.0.0.1:${port}`);
    other.close();
  });

  it('takes the certificate that it is given', async () => {
    const pem = await makeSelfSigned(['own.example.test']);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY');
    const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')];
    writeFileSync(cert, pem.slice(0, at));
    writeFileSync(key, pem.slice(at));
    await open({ TRIVET_TLS_CERT_FILE: cert, TRIVET_TLS_KEY_FILE: key });
    expect((await get()).names).toContain('own.example.test');
  });
});

describe('a changed certificate', () => {
  const [old, fresh] = [
    { cert: 'old', key: 'old' },
    { cert: 'new', key: 'new' },
  ];

  const server = { setSecureContext: vi.fn() };
  const reload = (read: () => typeof old, current: typeof old) =>
    reloading('certificate', server, { read, description: 'file' }, current, log).run(new AbortController().signal);

  it('is taken once', async () => {
    const current = { ...old };
    await reload(() => fresh, current);
    await reload(() => fresh, current);
    expect(server.setSecureContext.mock.calls).toEqual([[fresh]]);
    expect(current).toEqual(fresh);
  });

  it('that cannot be used leaves the old one, and whoever looks at tasks is told', async () => {
    server.setSecureContext.mockClear();
    const current = { ...old };
    const read = () => {
      throw new ConfigError('not a certificate');
    };
    await expect(reload(read, current)).rejects.toThrow('not a certificate');
    expect(server.setSecureContext).not.toHaveBeenCalled();
    expect(current).toEqual(old);
  });
});
