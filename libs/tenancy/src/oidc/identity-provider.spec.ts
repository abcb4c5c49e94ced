import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OidcSettings } from '#platform/config/oidc-settings';
import { configureLogging } from '#platform/logging/log';
import { IdentityProvider, type Person } from '#tenancy/oidc/identity-provider';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const another = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = (): number => Math.floor(Date.now() / 1_000);

/** What the provider answers; each test changes what it is about. */
let metadata: Record<string, unknown>;
let claims: Record<string, unknown>;
let header: Record<string, unknown>;
let key: KeyObject;
let tokens: { status: number; body?: object };
let userinfo: Record<string, unknown>;
let asked: { path: string; authorization: string | undefined; body: string }[];
let server: Server;
let settings: OidcSettings;

async function answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
  const { url: path = '', headers } = request;
  asked.push({ path, authorization: headers.authorization, body: await text(request) });
  if (path === '/.well-known/openid-configuration') return { status: 200, body: metadata };
  if (path === '/keys')
    return { status: 200, body: { keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] } };
  if (path === '/userinfo') return { status: 200, body: userinfo };
  const signed = `${base64(header)}.${base64(claims)}`;
  const signature =
    header.alg === 'none' ? '' : sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  const idToken = `${signed}.${signature.toString('base64url' as never)}`;
  const body = tokens.body ?? { access_token: 'access', token_type: 'Bearer', expires_in: 60, id_token: idToken };
  return { status: tokens.status, body };
}

configureLogging({ level: 'error' });

beforeEach(async () => {
  asked = [];
  server = createServer((request, reply) => {
    void answer(request).then(({ status, body }) =>
      reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
    );
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  settings = {
    name: 'Test ID',
    issuer,
    clientId: 'a client',
    clientSecret: 'its: secret',
    redirectUri: 'https://trivet.example/login/provider',
    scopes: 'openid',
    loginClaim: 'name',
    loginTenant: 'default',
  };
  metadata = {
    issuer,
    authorization_endpoint: `${issuer}authorize`,
    token_endpoint: `${issuer}token`,
    jwks_uri: `${issuer}keys`,
    userinfo_endpoint: `${issuer}userinfo`,
    id_token_signing_alg_values_supported: ['ES256'],
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
  };
  claims = { iss: issuer, aud: settings.clientId, sub: 'person-1', name: 'ann', iat: now(), exp: now() + 60 };
  header = { alg: 'ES256' };
  key = privateKey;
  tokens = { status: 200 };
  userinfo = { sub: 'person-1', name: 'ann of userinfo' };
});
afterEach(() => new Promise(resolve => server.close(resolve)));

/** A login from its beginning, with these claims changed. */
async function logIn(changed: Record<string, unknown> = {}): Promise<Person> {
  const provider = new IdentityProvider(settings);
  const { begun } = await provider.begin();
  claims = { ...claims, nonce: begun.nonce, ...changed };
  return provider.person(`code=the-code&state=${begun.state}`, begun);
}
const unproved = { kind: 'unauthenticated', retry: 'never' };
const at = (path: string) => asked.filter(request => request.path === path);

describe('an ID token', () => {
  it('says who it is', async () => {
    expect(await logIn()).toEqual({ subject: 'person-1', login: 'ann' });
    expect(at('/userinfo')).toEqual([]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['for another nonce', { nonce: 'another' }],
    ['without a nonce', { nonce: undefined }],
    ['of another issuer', { iss: 'https://elsewhere.example/' }],
    ['for another client', { aud: 'another' }],
    ['for several, made for another', { aud: ['a client', 'another'], azp: 'another' }],
    ['that has expired', { iat: now() - 120, exp: now() - 60 }],
    ['of the future', { nbf: now() + 120 }],
    ['of nobody', { sub: undefined }],
    ['of a name without end', { sub: 'x'.repeat(256) }],
    ['of a name that nobody can write down', { sub: 'x\u0000' }],
  ])('%s is refused', async (_, changed) => {
    await expect(logIn(changed)).rejects.toMatchObject(unproved);
  });

  it('is taken from a clock that is half a minute off, one way or the other', async () => {
    expect(await logIn({ iat: now() - 80, exp: now() - 20 })).toMatchObject({ subject: 'person-1' });
    expect(await logIn({ iat: now() + 20, nbf: now() + 20 })).toMatchObject({ subject: 'person-1' });
  });

  it('that somebody else signed, or nobody, is refused', async () => {
    key = another.privateKey;
    await expect(logIn()).rejects.toMatchObject(unproved);
    header = { alg: 'none' };
    await expect(logIn()).rejects.toMatchObject(unproved);
  });

  it('without the claim of login names has userinfo asked for it, which must be of the same person', async () => {
    expect(await logIn({ name: undefined })).toEqual({ subject: 'person-1', login: 'ann of userinfo' });
    expect(at('/userinfo')).toMatchObject([{ authorization: 'Bearer access' }]);
    userinfo = { sub: 'person-2', name: 'bob' };
    await expect(logIn({ name: undefined })).rejects.toMatchObject(unproved);
  });

  it('whose claim is no text claims nothing', async () => {
    expect(await logIn({ name: ['ann'] })).toEqual({ subject: 'person-1', login: undefined });
    settings = { ...settings, loginClaim: undefined };
    expect(await logIn()).toEqual({ subject: 'person-1', login: undefined });
  });
});

describe('the provider', () => {
  it('is told the code, its PKCE secret, and who asks, as it says that it wants it', async () => {
    await logIn();
    const [{ authorization, body } = { authorization: '', body: '' }] = at('/token');
    expect(Object.fromEntries(new URLSearchParams(body))).toMatchObject({
      grant_type: 'authorization_code',
      code: 'the-code',
      redirect_uri: 'https://trivet.example/login/provider',
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(Buffer.from(authorization!.split(' ')[1]!, 'base64').toString()).toBe('a+client:its%3A+secret');
    metadata.token_endpoint_auth_methods_supported = ['client_secret_post'];
    await logIn();
    const posted = at('/token')[1]!;
    expect(posted.authorization).toBeUndefined();
    expect(new URLSearchParams(posted.body).get('client_secret')).toBe('its: secret');
  });

  it('is asked once what it can do, by however many', async () => {
    const provider = new IdentityProvider(settings);
    await Promise.all([provider.begin(), provider.begin(), provider.begin()]);
    await provider.begin();
    expect(at('/.well-known/openid-configuration')).toHaveLength(1);
  });

  it('that is not the one of the settings is not used', async () => {
    metadata.issuer = 'https://elsewhere.example/';
    await expect(logIn()).rejects.toMatchObject({ kind: 'failed_precondition' });
  });

  it.each([
    ['knows the code no more', 400, { error: 'invalid_grant' }, unproved],
    ['does not know the client', 401, { error: 'invalid_client' }, { kind: 'failed_precondition' }],
    ['has a defect', 500, { error: 'server_error' }, { kind: 'unavailable' }],
    ['is behind something that answers instead', 502, {}, { kind: 'unavailable' }],
  ])('that %s is told apart', async (_, status, body, expected) => {
    tokens = { status, body };
    await expect(logIn()).rejects.toMatchObject(expected);
  });
});
