import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Provider from 'oidc-provider';
import { REDIRECT_PATH } from '#platform/config/oidc-settings';
import { freePort } from '#test/support/free-port';

const CLIENT_ID = 'trivet';
const SCOPES = 'openid profile';

interface GrantContext {
  oidc: { client: { clientId: string }; session: { accountId: string } };
}

/** A real OpenID Connect provider in this process. Whoever logs in there is who they say; nobody is asked for consent. */
export class TestProvider {
  /** Claims besides `sub`, by `sub`. They come from userinfo, as OpenID Connect has it by default. */
  readonly people: Record<string, Record<string, unknown>> = {};

  private constructor(
    readonly issuer: string,
    readonly publicUrl: string,
    private readonly server: Server,
    private readonly folder: string,
    private readonly secret: string,
  ) {}

  /** @param publicUrl of the gateway, which browsers are sent back to */
  static async start(publicUrl: string): Promise<TestProvider> {
    const port = await freePort();
    const issuer = `http://127.0.0.1:${port}`;
    const secret = randomBytes(24).toString('base64url');
    const folder = mkdtempSync(join(tmpdir(), 'trivet-provider-'));
    writeFileSync(join(folder, 'secret'), `${secret}\n`, { mode: 0o600 });
    const server = createServer();
    const made = new TestProvider(issuer, publicUrl, server, folder, secret);
    server.on('request', made.provider().callback());
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
    return made;
  }

  /** Settings of a gateway that knows it. */
  get env(): Record<string, string> {
    return {
      TRIVET_PUBLIC_URL: this.publicUrl,
      TRIVET_OIDC_ISSUER: this.issuer,
      TRIVET_OIDC_CLIENT_ID: CLIENT_ID,
      TRIVET_OIDC_CLIENT_SECRET_FILE: join(this.folder, 'secret'),
      TRIVET_OIDC_NAME: 'Test ID',
      TRIVET_OIDC_LOGIN_CLAIM: 'preferred_username',
    };
  }

  /** As a person with a browser: goes to `location`, logs in as `subject`, and gives the query that leads back. */
  async logIn(location: string, subject: string): Promise<string> {
    const cookies = new Map<string, string>();
    const go = async (url: URL, form?: Record<string, string>): Promise<Response> => {
      const reply = await fetch(url, {
        redirect: 'manual',
        headers: { cookie: [...cookies].map(pair => pair.join('=')).join('; ') },
        ...(form ? { method: 'POST', body: new URLSearchParams(form) } : {}),
      });
      for (const set of reply.headers.getSetCookie()) {
        const [name, value] = set.split(';', 1)[0]!.split('=') as [string, string];
        cookies.set(name, value);
      }
      return reply;
    };
    let at = new URL(location);
    for (let step = 0; step < 8; step++) {
      if (at.pathname === REDIRECT_PATH) return at.search.slice(1);
      const asked = /^\/interaction\//.test(at.pathname);
      const reply = await go(at, asked ? { prompt: 'login', login: subject, password: 'any' } : undefined);
      const next = reply.headers.get('location');
      if (next === null) throw new Error(`${at.href} answers ${reply.status}: ${await reply.text()}`);
      at = new URL(next, at);
    }
    throw new Error('the provider goes round in circles');
  }

  /** Nobody listens at its address any more. */
  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private provider(): Provider {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = { ...privateKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' };
    const provider: Provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: this.secret,
          redirect_uris: [`${this.publicUrl}${REDIRECT_PATH}`],
          id_token_signed_response_alg: 'ES256',
        },
      ],
      jwks: { keys: [key] },
      enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      claims: { openid: ['sub'], profile: ['preferred_username'] },
      ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, IdToken: 60, Interaction: 600, Session: 600 },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, ...this.people[sub] }),
      }),
      loadExistingGrant: async ({ oidc }: GrantContext) => {
        const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
        grant.addOIDCScope(SCOPES);
        await grant.save();
        return grant;
      },
    });
    return provider;
  }
}
