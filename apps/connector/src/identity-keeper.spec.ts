import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '#platform/logging/log';
import type { Gateway } from './gateways.js';
import type { Identity } from './identity.js';
import { type KeeperParts, keepIdentity } from './identity-keeper.js';

const DAY_MS = 24 * 3_600_000;
const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Of 30 days, so many of them over. */
async function identityOf(days: number, key = 'key'): Promise<Identity> {
  const notBefore = new Date(Date.now() - days * DAY_MS);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'O=tenant',
    notBefore,
    notAfter: new Date(notBefore.getTime() + 30 * DAY_MS),
    keys: await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']),
    signingAlgorithm: CURVE,
  });
  return { key, certificate: certificate.toString('pem'), authority: 'authority' };
}

describe('the certificate of a cluster', () => {
  const report = vi.fn();
  const renew = vi.fn();
  let stored: Identity | undefined;
  let used: Identity[];
  let parts: KeeperParts;
  beforeEach(() => {
    report.mockReset().mockResolvedValue({ renew: false });
    renew.mockReset();
    stored = undefined;
    used = [];
    parts = {
      file: {
        read: () => stored,
        write: next => {
          stored = next;
        },
      },
      gateways: { inOrder: () => [{ client: { report, renew } } as unknown as Gateway] },
      sockets: { counts: () => ({ cosi: 2 }) },
      log: createLogger('test'),
      name: 'one',
      use: next => used.push(next),
    };
  });

  it.each([
    [9, 0],
    [11, 1],
    [29, 1],
  ])('is renewed by itself from a third of its life on: after %s of 30 days %s times', async (days, times) => {
    const next = await identityOf(0);
    renew.mockResolvedValue(next.certificate);
    stored = await identityOf(days);
    await keepIdentity(parts, stored);
    expect(report).toHaveBeenCalledWith({ release: expect.any(String), name: 'one', connections: { cosi: 2 } });
    expect(renew).toHaveBeenCalledTimes(times);
    expect(used).toHaveLength(times);
    if (times === 0) return;
    // Kept before it is used, with a key of its own.
    expect(used[0]).toMatchObject({ certificate: next.certificate, authority: 'authority' });
    expect(used[0]!.key).toMatch(/^-----BEGIN PRIVATE KEY/);
    expect(stored).toBe(used[0]);
  });

  it('is renewed at once when the gateway says so', async () => {
    report.mockResolvedValue({ renew: true });
    renew.mockResolvedValue((await identityOf(0)).certificate);
    await keepIdentity(parts, await identityOf(0));
    expect(used).toHaveLength(1);
  });

  it('stays when nobody renews it, and is tried again by the next look', async () => {
    const old = await identityOf(15);
    stored = old;
    renew.mockRejectedValueOnce(new Error('away')).mockResolvedValue((await identityOf(0)).certificate);
    await expect(keepIdentity(parts, old)).rejects.toThrow('away');
    expect([stored, used]).toEqual([old, []]);
    await keepIdentity(parts, old);
    expect(used).toHaveLength(1);
  });

  it('is that of another connector of the cluster, which was sooner', async () => {
    stored = await identityOf(0, 'another');
    await keepIdentity(parts, await identityOf(15));
    expect(used).toEqual([stored]);
    expect(report).not.toHaveBeenCalled();
  });
});
