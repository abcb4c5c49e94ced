import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Config } from '#platform/config/config';
import { createLogger } from '#platform/logging/log';
import { makeSelfSigned } from '../../../gateway/src/self-signed.js';
import { type KeyFile, KeyFiles } from './key-files.js';

const LOOK_MS = 30_000;

describe('the certificate that a Secret puts into the pod', () => {
  let folder: string;
  let config: Config;
  let keys: KeyFiles;
  const told: KeyFile[] = [];

  async function renew(): Promise<string> {
    const pem = await makeSelfSigned(['door']);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY');
    writeFileSync(join(folder, 'tls.crt'), pem.slice(0, at));
    writeFileSync(join(folder, 'tls.key'), pem.slice(at));
    return pem.slice(0, at);
  }

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'keys-'));
    config = {
      TRIVET_TLS_CERT_FILE: join(folder, 'tls.crt'),
      TRIVET_TLS_KEY_FILE: join(folder, 'tls.key'),
    } as Config;
    await renew();
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    told.length = 0;
    keys = KeyFiles.open(config);
    keys.onChange(pair => told.push(pair));
    keys.follow(createLogger('test'));
  });
  afterEach(() => {
    keys.close();
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });

  it('is taken over when it is another one, once', async () => {
    vi.advanceTimersByTime(2 * LOOK_MS);
    expect(told).toEqual([]);
    const cert = await renew();
    vi.advanceTimersByTime(3 * LOOK_MS);
    expect(told).toEqual([expect.objectContaining({ cert, ca: cert })]);
    expect(keys.current.cert).toBe(cert);
  });

  it('goes on while the next one cannot be read, or does not fit its key', async () => {
    const { cert } = keys.current;
    writeFileSync(config.TRIVET_TLS_KEY_FILE!, 'half a key');
    vi.advanceTimersByTime(LOOK_MS);
    rmSync(config.TRIVET_TLS_CERT_FILE!);
    vi.advanceTimersByTime(LOOK_MS);
    expect([told, keys.current.cert]).toEqual([[], cert]);
    const next = await renew();
    vi.advanceTimersByTime(LOOK_MS);
    expect(keys.current.cert).toBe(next);
  });
});
