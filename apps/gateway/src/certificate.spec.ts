import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { certificateSource } from './certificate.js';
import { makeSelfSigned } from './self-signed.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tls-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const tls = (name = '') => join(home, 'tls', name);

describe('the certificate of a home', () => {
  it('is made once, and kept', async () => {
    const source = await certificateSource({ home, names: ['storage.example.test', '192.0.2.7', '0.0.0.0'] });
    const { cert } = source.read();
    expect((await certificateSource({ home, names: [] })).read()).toEqual(source.read());
    expect(statSync(tls('server.pem')).mode & 0o777).toBe(0o600);
    expect(readFileSync(tls('certificate.pem'), 'utf8')).toBe(cert);
    expect(readdirSync(tls()).sort()).toEqual(['certificate.pem', 'server.pem']);
    const x509 = new X509Certificate(cert);
    for (const name of ['localhost', hostname(), 'storage.example.test']) expect(x509.checkHost(name)).toBe(name);
    for (const address of ['127.0.0.1', '192.0.2.7']) expect(x509.checkIP(address)).toBe(address);
    expect(x509.checkIP('0.0.0.0')).toBeUndefined();
    expect(x509.verify(x509.publicKey)).toBe(true);
    expect(x509.validToDate.getTime()).toBeGreaterThan(Date.now() + 9 * 365 * 86_400_000);
  });

  it('is made anew when it lacks a name that is wanted, and keeps the names it had', async () => {
    const first = (await certificateSource({ home, names: ['old.example.test'] })).read();
    const wanted = ['trivet.example.test', '192.0.2.7', '2001:db8::7'];
    const { cert, key } = (await certificateSource({ home, names: wanted })).read();
    expect(key).not.toBe(first.key);
    expect(readFileSync(tls('certificate.pem'), 'utf8')).toBe(cert);
    const x509 = new X509Certificate(cert);
    for (const name of ['old.example.test', 'trivet.example.test']) expect(x509.checkHost(name)).toBe(name);
    for (const address of ['192.0.2.7', '2001:db8::7']) expect(x509.checkIP(address)).toBe(address);
    const names = x509.subjectAltName!.split(', ');
    expect(new Set(names).size).toBe(names.length);
    // Two gateways of a home with an address each do not take it from one another.
    for (const names of [['old.example.test'], wanted])
      expect((await certificateSource({ home, names })).read()).toEqual({ cert, key });
  });

  it('is one, whoever starts at the same time', async () => {
    const sources = await Promise.all(Array.from({ length: 5 }, () => certificateSource({ home, names: [] })));
    expect(new Set(sources.map(source => source.read().key)).size).toBe(1);
    expect(readFileSync(tls('certificate.pem'), 'utf8')).toBe(sources[0]!.read().cert);
  });

  it.each(['', 'not PEM', 'cut'])('is made anew when what is kept cannot be used: %j', async kept => {
    mkdirSync(tls());
    writeFileSync(tls('server.pem'), kept === 'cut' ? (await makeSelfSigned([])).slice(0, 400) : kept);
    const { cert, key } = (await certificateSource({ home, names: [] })).read();
    expect(cert).toContain('BEGIN CERTIFICATE');
    expect(key).toContain('BEGIN PRIVATE KEY');
  });
});

describe('a home that cannot be written', () => {
  it('has a certificate for as long as the process lives', async () => {
    const file = join(home, 'file');
    writeFileSync(file, '');
    const source = await certificateSource({ home: file, names: [] });
    expect(source.description).toBe('made for this process');
    expect(source.read()).toBe(source.read());
    expect(new X509Certificate(source.read().cert).checkHost('localhost')).toBe('localhost');
  });
});

describe('a configured certificate', () => {
  const files = async () => {
    const pem = await makeSelfSigned(['own.example.test']);
    const at = pem.indexOf('-----BEGIN PRIVATE KEY');
    const [certFile, keyFile] = [join(home, 'cert.pem'), join(home, 'key.pem')];
    writeFileSync(certFile, pem.slice(0, at));
    writeFileSync(keyFile, pem.slice(at));
    return { certFile, keyFile };
  };

  it('is read anew each time', async () => {
    const { certFile, keyFile } = await files();
    const source = await certificateSource({ certFile, keyFile, home, names: [] });
    const first = source.read();
    await files();
    expect(source.read()).not.toEqual(first);
    writeFileSync(keyFile, first.key);
    expect(() => source.read()).toThrow(ConfigError);
  });

  it.each([
    ['TRIVET_TLS_KEY_FILE: required', { keyFile: undefined }],
    ['TRIVET_TLS_CERT_FILE: required', { certFile: undefined }],
    ['TRIVET_TLS_CERT_FILE: cannot read', { certFile: '/nowhere/cert.pem' }],
    ['TRIVET_TLS_KEY_FILE: cannot read', { keyFile: '/nowhere/key.pem' }],
    ['TRIVET_TLS_CERT_FILE: not a certificate', { certFile: '/etc/hostname' }],
  ])('that is wrong stops the start: %s', async (message, wrong) => {
    const settings = { ...(await files()), home, names: [], ...wrong };
    await expect(certificateSource(settings)).rejects.toThrow(message);
    await expect(certificateSource(settings)).rejects.toBeInstanceOf(ConfigError);
  });
});
