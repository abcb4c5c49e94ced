import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '#platform/config/config';
import { oidcSettings } from '#platform/config/oidc-settings';

const folder = mkdtempSync(join(tmpdir(), 'trivet-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const problems = (env: Record<string, string>, required: Parameters<typeof loadConfig>[0] = []): string[] => {
  try {
    loadConfig(required, env);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.split('\n');
  }
};

describe('loadConfig', () => {
  it('has a default for all but addresses, and ignores what is not ours', () => {
    const config = loadConfig([], { PATH: '/bin', COSI_OTHER: 'x', TRIVET_RGW_REGION: '' });
    expect(config.TRIVET_HTTP_LISTEN).toEqual({ host: '127.0.0.1', port: 8740 });
    expect(config.TRIVET_RGW_REGION).toBe('default');
    expect(config.TRIVET_DATABASE_URL).toBeUndefined();
  });

  it('names every variable that is wrong, missing or unknown, one line each', () => {
    const lines = problems({ TRIVET_HTTP_LISTEN: '8740', TRIVET_DATABASE_URL: 'mysql://x', TRIVET_TYPO: '1' });
    expect(lines).toHaveLength(3);
    expect(lines).toEqual(
      expect.arrayContaining([
        'TRIVET_HTTP_LISTEN: expected host:port',
        expect.stringMatching(/^TRIVET_DATABASE_URL: expected postgresql:/),
        'TRIVET_TYPO: unknown variable',
      ]),
    );
    expect(problems({ TRIVET_LEASE_MS: '0' }, ['TRIVET_KEK_FILE', 'TRIVET_HOME'])).toEqual([
      expect.stringMatching(/^TRIVET_LEASE_MS: /),
      'TRIVET_KEK_FILE: required, but not set',
    ]);
    expect(problems({}, ['TRIVET_KEK_FILE', 'TRIVET_REDIS_URL'])).toEqual([
      'TRIVET_KEK_FILE: required, but not set',
      'TRIVET_REDIS_URL: required, but not set',
    ]);
  });

  it.each(['TRIVET_FAILPOINT', 'TRIVET_FAILPOINTS', 'TRIVET_FAKE_BACKEND_FILE', 'TRIVET_FAKE_BLOCK_FILE'])(
    'knows nothing of tests: %s',
    name => {
      for (const value of ['1', '']) expect(problems({ [name]: value })).toEqual([`${name}: unknown variable`]);
    },
  );

  it('never repeats a value', () => {
    const lines = problems({ TRIVET_DATABASE_URL: 'cAnArY', TRIVET_REDIS_URL: 'cAnArY', COSI_ENDPOINT: 'cAnArY' });
    expect(lines).toHaveLength(3);
    expect(lines.join()).not.toContain('cAnArY');
  });

  it('says how long a socket path is, and how long it may be', () => {
    const path = `/${'x'.repeat(110)}.sock`;
    expect(problems({ COSI_ENDPOINT: `unix://${path}` })).toEqual([
      `COSI_ENDPOINT: expected a socket path of at most 107 bytes, got ${path.length}`,
    ]);
  });
});

describe('the COSI endpoint', () => {
  it.each(['/run/cosi.sock', 'unix://cosi.sock', 'unix:///run/cosi', 'unix:///.sock', 'tcp://127.0.0.1:80'])(
    'is a socket by an absolute path that ends in .sock, not %s',
    value => expect(problems({ COSI_ENDPOINT: value })).toEqual([expect.stringMatching(/^COSI_ENDPOINT: expected /)]),
  );

  it('is the path of the address', () => {
    const { COSI_ENDPOINT } = loadConfig([], { COSI_ENDPOINT: 'unix:///var/lib/cosi/cosi.sock' });
    expect(COSI_ENDPOINT).toBe('/var/lib/cosi/cosi.sock');
  });

  it.each(['A', '7.of.9', '3', 'a.', 'a..a', 'a-.b', 'a_b', 'cosi.Example', 'a'.repeat(64)])(
    'has a driver name that the sidecar accepts, not %s',
    value =>
      expect(problems({ TRIVET_COSI_DRIVER_NAME: value })).toEqual([
        expect.stringMatching(/^TRIVET_COSI_DRIVER_NAME: /),
      ]),
  );
});

describe('an address from a file', () => {
  const file = join(folder, 'url');
  writeFileSync(file, 'postgresql://trivet_app:pw@db/trivet\n');

  it('is read, checked like any other, and satisfies what is required', () => {
    const config = loadConfig(['TRIVET_DATABASE_URL'], { TRIVET_DATABASE_URL_FILE: file });
    expect(config.TRIVET_DATABASE_URL).toBe('postgresql://trivet_app:pw@db/trivet');
    expect(problems({ TRIVET_REDIS_URL_FILE: file })).toEqual([expect.stringMatching(/^TRIVET_REDIS_URL: /)]);
  });

  it('that is missing, or given twice, is a problem with the name of its variable', () => {
    expect(
      problems({ TRIVET_DATABASE_ENGINE_URL_FILE: join(folder, 'absent') }, ['TRIVET_DATABASE_ENGINE_URL']),
    ).toEqual([expect.stringMatching(/^TRIVET_DATABASE_ENGINE_URL_FILE: cannot read .*ENOENT/)]);
    expect(problems({ TRIVET_DATABASE_OWNER_URL_FILE: file, TRIVET_DATABASE_OWNER_URL: 'postgresql://a@b/c' })).toEqual(
      [expect.stringContaining('TRIVET_DATABASE_OWNER_URL_FILE: give either')],
    );
    expect(problems({ TRIVET_KEK_FILE_FILE: file })).toEqual(['TRIVET_KEK_FILE_FILE: unknown variable']);
  });
});

describe('a number', () => {
  it('is small enough for a timer, which would else fire at once', () => {
    expect(loadConfig([], { TRIVET_COSI_WAIT_MS: '2147483647' }).TRIVET_COSI_WAIT_MS).toBe(2_147_483_647);
    for (const value of ['2147483648', '0', '-1', '1.5', 'ten'])
      expect(problems({ TRIVET_COSI_WAIT_MS: value })).toEqual([expect.stringMatching(/^TRIVET_COSI_WAIT_MS: /)]);
    // Three times that is a timer, too.
    expect(problems({ TRIVET_CBT_STALL_MS: '1000000000' })).toEqual([expect.stringContaining('from 1 to 86400000')]);
  });

  it('that is none says in words of the setting what is expected, and shows only what may be a mistyped number', () => {
    expect(problems({ TRIVET_LEASE_MS: 'abc' })).toEqual([
      'TRIVET_LEASE_MS: expected a whole number of milliseconds from 1 to 2147483647, got "abc"',
    ]);
    expect(problems({ TRIVET_RECYCLE_MS: ' ' })).toEqual([
      'TRIVET_RECYCLE_MS: expected a whole number of milliseconds from 0 to 31536000000, got " "',
    ]);
    expect(problems({ TRIVET_TENANT_CAP: '32768' })).toEqual([
      'TRIVET_TENANT_CAP: expected a whole number of operations from 1 to 32767, got "32768"',
    ]);
    expect(problems({ TRIVET_WORKER_CONCURRENCY: '0' })).toEqual([
      'TRIVET_WORKER_CONCURRENCY: expected a whole number of operations from 1 to 2147483647, got "0"',
    ]);
    expect(problems({ TRIVET_DATABASE_POOL: 'cAnArY-of-a-secret' })).toEqual([
      'TRIVET_DATABASE_POOL: expected a whole number of connections from 1 to 2147483647, got 18 characters',
    ]);
    expect(loadConfig([], { TRIVET_RECYCLE_MS: '0' }).TRIVET_RECYCLE_MS).toBe(0);
  });
});

describe('settings of OpenID Connect', () => {
  const secretFile = join(folder, 'client-secret');
  const all = {
    TRIVET_PUBLIC_URL: 'https://trivet.example:8743/',
    TRIVET_OIDC_ISSUER: 'https://id.example',
    TRIVET_OIDC_CLIENT_ID: 'trivet',
    TRIVET_OIDC_CLIENT_SECRET_FILE: secretFile,
  };
  const made = (env: Record<string, string>) => oidcSettings(loadConfig([], env));

  it('are one whole, or there is no provider', () => {
    expect(made({})).toBeUndefined();
    writeFileSync(secretFile, 'of the client\n');
    expect(made(all)).toEqual({
      name: 'single sign-on',
      issuer: 'https://id.example/',
      clientId: 'trivet',
      clientSecret: 'of the client',
      redirectUri: 'https://trivet.example:8743/login/provider',
      scopes: 'openid profile',
      loginClaim: undefined,
      loginTenant: 'default',
    });
    for (const name of Object.keys(all).filter(other => other !== 'TRIVET_OIDC_ISSUER'))
      expect(() => made({ ...all, [name]: '' })).toThrow(`${name}: required with TRIVET_OIDC_ISSUER`);
    writeFileSync(secretFile, '\n');
    expect(() => made(all)).toThrow(`TRIVET_OIDC_CLIENT_SECRET_FILE: ${secretFile} is empty`);
  });

  it.each([
    ['TRIVET_OIDC_ISSUER', 'http://id.example/realms/a'],
    ['TRIVET_OIDC_ISSUER', 'http://127.0.0.1.example/'],
    ['TRIVET_OIDC_ISSUER', 'https://user:password@id.example/'],
    ['TRIVET_OIDC_ISSUER', 'https://id.example/?realm=a'],
    ['TRIVET_OIDC_ISSUER', 'id.example'],
    ['TRIVET_PUBLIC_URL', 'http://trivet.example'],
    ['TRIVET_PUBLIC_URL', 'https://trivet.example/below'],
    ['TRIVET_OIDC_SCOPES', 'profile'],
    ['TRIVET_OIDC_LOGIN_CLAIM', 'email'],
    ['TRIVET_OIDC_LOGIN_TENANT', 'Acme'],
  ])('%s is never %s', (name, value) => {
    expect(problems({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: expected `))]);
  });

  it('may be in the clear within this host', () => {
    for (const url of ['http://127.0.0.1:9000', 'http://localhost:9000', 'http://[::1]:9000'])
      expect(problems({ TRIVET_OIDC_ISSUER: url, TRIVET_PUBLIC_URL: url })).toEqual([]);
  });
});
