import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, loadConfig } from '#platform/config/config';
import { metadataService } from './metadata-service.js';

const door = { port: 8745, caCert: () => 'served' };
const service = (env: Record<string, string>) => metadataService(loadConfig([], env), door);

describe('what sessions say about the door', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    [{ TRIVET_CBT_LISTEN: '192.0.2.7:8745' }, '192.0.2.7:8745'],
    [{ TRIVET_CBT_LISTEN: '[2001:db8::7]:8745' }, '[2001:db8::7]:8745'],
    [{ TRIVET_CBT_LISTEN: '0.0.0.0:0' }, `${hostname()}:8745`],
    [{ TRIVET_CBT_LISTEN: '0.0.0.0:0', TRIVET_CBT_PUBLIC_ADDRESS: 'trivet.example.com:443' }, 'trivet.example.com:443'],
  ])('is its address: %j', (env, address) => {
    expect(service(env)()).toEqual({ address, caCert: 'served', drivers: ['csi.hpe.com'] });
  });

  it('is the configured CA, and follows it within 5 s', () => {
    const folder = mkdtempSync(join(tmpdir(), 'metadata-service-'));
    const file = join(folder, 'ca.pem');
    try {
      writeFileSync(file, 'first');
      const began = performance.now();
      const now = vi.spyOn(performance, 'now').mockReturnValue(began);
      const say = service({ TRIVET_TLS_CA_FILE: file });
      writeFileSync(file, 'second');
      expect(say().caCert).toBe('first');
      now.mockReturnValue(began + 5_000);
      expect(say().caCert).toBe('second');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('stops the start when the CA cannot be read', () => {
    expect(() => service({ TRIVET_TLS_CA_FILE: '/nonexistent/ca.pem' })).toThrow(ConfigError);
  });
});
