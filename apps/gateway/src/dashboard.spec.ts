import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serveDashboard } from './dashboard.js';

const PAGE = '<html><meta nonce="__CSP_NONCE__"><script src="/assets/a-1.js" nonce="__CSP_NONCE__"></script></html>';
const HTML = { accept: 'text/html,*/*' };
const CODE = 'export const answer = 42;\n'.repeat(50);

describe('the files of the dashboard', () => {
  let folder: string;
  let http: FastifyInstance;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'favicon.svg'), '<svg/>');
    writeFileSync(join(folder, 'assets', 'a-1.js'), CODE);
    writeFileSync(join(folder, 'secret.key'), 'x');
    http = fastify();
    http.get('/containers/v1/volumes', () => 'of the driver');
    serveDashboard(http, folder);
  });
  afterEach(async () => {
    await http.close();
    rmSync(folder, { recursive: true });
  });
  const get = (url: string, headers: Record<string, string> = HTML) => http.inject({ url, headers });

  it('gives the page for every address of it, each with a nonce of its own', async () => {
    const nonces = new Set<string>();
    for (const url of ['/', '/operations?state=failed', '/tenants/acme/volumes/1', '/index.html']) {
      const { statusCode, body, headers } = await get(url);
      expect(statusCode, url).toBe(200);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
      const policy = String(headers['content-security-policy']);
      const nonce = /'nonce-([^']+)'/.exec(policy)![1]!;
      nonces.add(nonce);
      expect(body).toBe(PAGE.replaceAll('__CSP_NONCE__', nonce));
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
    }
    expect(nonces.size).toBe(4);
  });

  it('gives files for a year, compressed as the caller can read them', async () => {
    const br = await get('/assets/a-1.js', { 'accept-encoding': 'gzip, deflate, br' });
    expect(br.headers).toMatchObject({
      'content-encoding': 'br',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      vary: 'accept-encoding',
    });
    expect(brotliDecompressSync(br.rawPayload).toString()).toBe(CODE);
    const gz = await get('/assets/a-1.js', { 'accept-encoding': 'br;q=0, gzip;q=0.5' });
    expect(gz.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(gz.rawPayload).toString()).toBe(CODE);
    const plain = await get('/assets/a-1.js', {});
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.body).toBe(CODE);
    expect((await get('/favicon.svg')).headers['cache-control']).toBe('public, max-age=86400');
  });

  it('has nothing else, whatever is asked for', async () => {
    for (const url of ['/secret.key', '/assets/../secret.key', '/assets/%2e%2e/secret.key', '/assets/b.js', '/.vite/x'])
      expect((await get(url, { accept: '*/*' })).statusCode, url).toBe(404);
    for (const url of ['/assets/gone.js', '/api/v1/nothing', '/docs/nothing', '/containers/v1/nothing', '/metrics'])
      expect((await get(url)).statusCode, url).toBe(404);
    expect((await get('/containers/v1/volumes')).body).toBe('of the driver');
    expect((await http.inject({ method: 'POST', url: '/operations' })).statusCode).toBe(404);
  });

  it('says how to build it when nobody has', async () => {
    const bare = fastify();
    serveDashboard(bare, join(folder, 'nowhere'));
    const { statusCode, body } = await bare.inject({ url: '/', headers: HTML });
    expect(statusCode).toBe(503);
    expect(body).toContain('./trivet up');
    await bare.close();
  });
});
