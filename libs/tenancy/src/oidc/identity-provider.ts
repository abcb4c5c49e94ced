import type { ClientAuth, Configuration } from 'openid-client';
import type { OidcSettings } from '#platform/config/oidc-settings';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { type Begun, LOGIN_SECONDS } from '#tenancy/oidc/sealed-login';

const log = createLogger('identity-provider');

/** The provider's addresses and keys may move. */
const DISCOVERY_MS = 3_600_000;
const PATIENCE_SECONDS = 5;

/** As OpenID Connect bounds it. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/** Whom the provider vouches for. */
export interface Person {
  /** Its `sub`. */
  subject: string;
  /** What TRIVET_OIDC_LOGIN_CLAIM says, if it is text. */
  login: string | undefined;
}

/** The answer is none to this login, or says that there is none. Guesses look like this. */
export class LoginUnproved extends StorageError {
  constructor(message: string, cause?: unknown) {
    super('unauthenticated', message, { retry: 'never', cause });
  }
}

/** Codes of the library: no answer, or one of something else on the way. */
const AWAY = new Set(['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON']);

type Library = typeof import('openid-client');

/** OpenID Connect by the authorization code flow with PKCE: what goes over the wire, and nothing of users. */
export class IdentityProvider {
  private known: { config: Configuration; until: number } | undefined;
  private asking: Promise<Configuration> | undefined;

  constructor(readonly settings: OidcSettings) {}

  async begin(): Promise<{ location: string; begun: Begun }> {
    const oidc = await import('openid-client');
    const config = await this.discovered(oidc);
    const begun: Begun = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
      until: Date.now() + LOGIN_SECONDS * 1_000,
    };
    const location = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.settings.redirectUri,
      scope: this.settings.scopes,
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: 'S256',
    });
    return { location: location.href, begun };
  }

  /** Exchanges the code of `answer`, a query, and checks all that is said of the person. */
  async person(answer: string, { state, nonce, verifier }: Begun): Promise<Person> {
    const { loginClaim, redirectUri } = this.settings;
    const oidc = await import('openid-client');
    const config = await this.discovered(oidc);
    const url = new URL(redirectUri);
    url.search = answer;
    try {
      const tokens = await oidc.authorizationCodeGrant(config, url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
      });
      const claims = tokens.claims()!;
      if (!SUBJECT.test(claims.sub)) throw new LoginUnproved(`${this.settings.name} gives you a name that is none`);
      let login: unknown = loginClaim && claims[loginClaim];
      if (loginClaim && login === undefined && config.serverMetadata().userinfo_endpoint)
        login = (await oidc.fetchUserInfo(config, tokens.access_token, claims.sub))[loginClaim];
      return { subject: claims.sub, login: typeof login === 'string' ? login : undefined };
    } catch (error) {
      throw this.refusal(oidc, error);
    }
  }

  /** All who wait share one question: a provider that is away is not asked by each of them. */
  private discovered(oidc: Library): Promise<Configuration> {
    if (this.known && performance.now() < this.known.until) return Promise.resolve(this.known.config);
    this.asking ??= this.discover(oidc).finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async discover(oidc: Library): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.settings;
    const [basic, post] = [oidc.ClientSecretBasic(clientSecret), oidc.ClientSecretPost(clientSecret)];
    const authenticate: ClientAuth = (server, ...rest) => {
      const methods = server.token_endpoint_auth_methods_supported;
      return (methods && !methods.includes('client_secret_basic') ? post : basic)(server, ...rest);
    };
    // Also of an ID token that came straight from the provider, whose signature the standard leaves unread.
    const execute = [oidc.enableNonRepudiationChecks];
    if (issuer.startsWith('http:')) execute.push(oidc.allowInsecureRequests);
    try {
      const options = { timeout: PATIENCE_SECONDS, execute };
      const config = await oidc.discovery(new URL(issuer), clientId, undefined, authenticate, options);
      this.known = { config, until: performance.now() + DISCOVERY_MS };
      return config;
    } catch (error) {
      log.warn({ ...reasonOf(error), issuer }, 'the identity provider does not say what it can do');
      if (this.known) return this.known.config;
      if (isAway(error)) throw this.away(error);
      throw new StorageError(
        'failed_precondition',
        `what ${this.settings.name} says of itself does not fit TRIVET_OIDC_ISSUER: whoever runs the appliance looks at it`,
        { cause: error },
      );
    }
  }

  private away(cause: unknown): StorageError {
    return new StorageError(
      'unavailable',
      `${this.settings.name} does not answer; log in with a password, or try again later`,
      { cause },
    );
  }

  /** What the library throws. The provider's own words stay in the log: whoever made the address may have written them. */
  private refusal(oidc: Library, error: unknown): StorageError {
    if (error instanceof LoginUnproved) return error;
    const { name } = this.settings;
    if (error instanceof oidc.AuthorizationResponseError) {
      log.info({ error: error.error.slice(0, 64) }, 'the identity provider refused a login');
      return new LoginUnproved(`${name} did not log you in; begin again`, error);
    }
    if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant')
      return new LoginUnproved(`${name} does not know this login any more; begin again`, error);
    log.warn(reasonOf(error), 'a login by the identity provider failed');
    if (error instanceof oidc.ResponseBodyError || error instanceof oidc.WWWAuthenticateChallengeError)
      return error.status >= 500
        ? this.away(error)
        : new StorageError(
            'failed_precondition',
            `${name} does not accept Trivet: whoever runs the appliance looks at TRIVET_OIDC_CLIENT_ID and its secret`,
            { cause: error },
          );
    if (isAway(error)) return this.away(error);
    return new LoginUnproved('what came back does not belong to this login; begin again', error);
  }
}

const isAway = (error: unknown): boolean =>
  error instanceof TypeError || AWAY.has(String((error as { code?: unknown }).code));

/** Nothing of what was sent or answered: codes, tokens and claims hang on these errors. */
function reasonOf(error: unknown): { reason: string; code: string } {
  const { message, code, cause } = error as { message?: string; code?: string; cause?: { code?: string } };
  return { reason: String(message), code: String(code ?? cause?.code) };
}
