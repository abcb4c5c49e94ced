import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { backendsOf } from '#tenancy/setup/setup';

const folder = mkdtempSync(join(tmpdir(), 'trivet-object-'));
const keyFile = join(folder, 'key');
writeFileSync(keyFile, 'QVFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==\n');
afterAll(() => rmSync(folder, { recursive: true }));

const backends = (env: Record<string, string>) => backendsOf(loadConfig([], { TRIVET_HOME: '/home/t', ...env }));
const azure = {
  TRIVET_AZURE_ENDPOINT: 'http://127.0.0.1:8755/trying',
  TRIVET_AZURE_ACCOUNT: 'trying',
  TRIVET_AZURE_KEY_FILE: keyFile,
};
const rgw = {
  TRIVET_RGW_ENDPOINT: 'http://10.0.0.5:7480',
  TRIVET_RGW_ACCESS_KEY_FILE: keyFile,
  TRIVET_RGW_SECRET_KEY_FILE: keyFile,
};

describe('object stores of the environment', () => {
  it('are absent without an address, and want what belongs to it', () => {
    const { TRIVET_AZURE_ENDPOINT: _, ...homeless } = azure;
    expect(backends(homeless)).toEqual([]);
    for (const [all, missing] of [
      [azure, 'TRIVET_AZURE_ACCOUNT'],
      [azure, 'TRIVET_AZURE_KEY_FILE'],
      [rgw, 'TRIVET_RGW_ACCESS_KEY_FILE'],
      [rgw, 'TRIVET_RGW_SECRET_KEY_FILE'],
    ] as const)
      expect(() => backends({ ...all, [missing]: '' })).toThrow(new RegExp(`${missing}: required`));
  });

  it('are a Blob service, an RGW, or both', () => {
    const credentials = { accountKey: 'QVFBQUFBQUFBQUFBQUFBQUFBQUFBQQ==' };
    const config = { account: 'trying', endpoint: 'http://127.0.0.1:8755/trying', authentication: 'sharedKey' };
    expect(backends(azure)).toEqual([{ name: 'azure', kind: 'azure', config, credentials }]);
    expect(backends({ ...azure, ...rgw }).map(({ name }) => name)).toEqual(['rgw', 'azure']);
    const seen = { ...azure, TRIVET_AZURE_PUBLIC_ENDPOINT: 'https://blobs.example/trying' };
    expect(backends(seen)[0]?.config).toMatchObject({ publicEndpoint: 'https://blobs.example/trying' });
  });
});
