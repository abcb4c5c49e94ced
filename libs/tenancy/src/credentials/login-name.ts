import { invalid } from '#platform/errors';

export const DEFAULT_TENANT = 'default';
/** Its users administer the appliance. */
export const APPLIANCE_TENANT = 'appliance';
/** The first of them. */
export const ADMIN_USER = 'admin';
/** The first user of the tenant default, for the driver. */
export const CSP_USER = 'csp';

/** As the columns check them. */
const USER = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;

export interface LoginName {
  tenant: string;
  user: string;
}

/** `user` in the tenant default, `user@tenant` anywhere; undefined when nobody can be called so. */
export function parseLoginName(text: string): LoginName | undefined {
  const at = text.lastIndexOf('@');
  const name =
    at < 0 ? { user: text, tenant: DEFAULT_TENANT } : { user: text.slice(0, at), tenant: text.slice(at + 1) };
  return USER.test(name.user) && TENANT.test(name.tenant) ? name : undefined;
}

export const showLoginName = ({ tenant, user }: LoginName): string =>
  tenant === DEFAULT_TENANT ? user : `${user}@${tenant}`;

export function requireUserName(name: string): string {
  if (!USER.test(name))
    throw invalid('name', 'expected 1 to 64 of a-z, 0-9, dot, dash and underscore, the first a letter or digit');
  return name;
}
