import { existsSync, readFileSync } from 'node:fs';
import { ADMIN_USER, APPLIANCE_TENANT, CSP_USER, DEFAULT_TENANT, showLoginName } from '#tenancy/credentials/login-name';
import { generatePassword } from '#tenancy/credentials/passwords';
import { type Home, writeWhole } from './home.js';

/** What clients of the appliance log in with; mode 0600. Scripts read it by these keys. */
export interface Credentials {
  csp?: { username: string; password: string };
  /** Of the appliance. A part is missing when nobody but its owner knows it; the token is that of `trivet` itself. */
  admin?: { username: string; password?: string; token?: string };
}

export const ADMIN_LOGIN = showLoginName({ tenant: APPLIANCE_TENANT, user: ADMIN_USER });

export function readCredentials(home: Home): Credentials {
  return existsSync(home.credentialsFile) ? JSON.parse(readFileSync(home.credentialsFile, 'utf8')) : {};
}

/** The file with the first password of the users `csp` or `admin`, made at the first call. */
export function ensurePassword(home: Home, name: 'csp-password' | 'admin-password'): string {
  const file = home.file('secrets', name);
  if (!existsSync(file)) writeWhole(file, `${generatePassword()}\n`);
  return file;
}

/** After a user of the home's own database got another password; the file names two of them. */
export function keepPassword(home: Home, tenant: string, name: string, password: string): void {
  if (tenant === DEFAULT_TENANT && name === CSP_USER) setCspCredentials(home, password);
  if (tenant === APPLIANCE_TENANT && name === ADMIN_USER) setAdminCredentials(home, { password });
}

export const setCspCredentials = (home: Home, password: string): void =>
  write(home, { csp: { username: CSP_USER, password } });

export const setAdminCredentials = (home: Home, known: { password?: string; token?: string }): void =>
  write(home, { admin: { ...readCredentials(home).admin, username: ADMIN_LOGIN, ...known } });

function write(home: Home, changed: Credentials): void {
  writeWhole(home.credentialsFile, `${JSON.stringify({ ...readCredentials(home), ...changed }, null, 2)}\n`);
}
