import { type Config, ConfigError, readSecretFile } from '#platform/config/config';

export interface OidcSettings {
  /** For people. */
  name: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  scopes: string;
  loginClaim: string | undefined;
  /** Of names without @ in that claim. */
  loginTenant: string;
}

/** Where the provider sends browsers back to: a path of the dashboard. */
export const REDIRECT_PATH = '/login/provider';

/** undefined: there is no provider. Throws ConfigError. */
export function oidcSettings(config: Config): OidcSettings | undefined {
  const issuer = config.TRIVET_OIDC_ISSUER;
  if (issuer === undefined) return undefined;
  const needed = <K extends keyof Config>(name: K): NonNullable<Config[K]> => {
    const value = config[name];
    if (value === undefined) throw new ConfigError(`${name}: required with TRIVET_OIDC_ISSUER`);
    return value as NonNullable<Config[K]>;
  };
  const clientId = needed('TRIVET_OIDC_CLIENT_ID');
  const secretFile = needed('TRIVET_OIDC_CLIENT_SECRET_FILE');
  const clientSecret = readSecretFile('TRIVET_OIDC_CLIENT_SECRET_FILE', secretFile);
  if (clientSecret === '') throw new ConfigError(`TRIVET_OIDC_CLIENT_SECRET_FILE: ${secretFile} is empty`);
  return {
    name: config.TRIVET_OIDC_NAME,
    issuer,
    clientId,
    clientSecret,
    redirectUri: `${needed('TRIVET_PUBLIC_URL')}${REDIRECT_PATH}`,
    scopes: config.TRIVET_OIDC_SCOPES,
    loginClaim: config.TRIVET_OIDC_LOGIN_CLAIM,
    loginTenant: config.TRIVET_OIDC_LOGIN_TENANT,
  };
}
