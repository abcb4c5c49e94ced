import { COOKIE } from '#admin/requests/admin.guard';

/** Strict: it goes along with no request that another site begins. No script can read it. */
export function sessionCookie(token: string, encrypted: boolean, expires?: Date): string {
  const until = expires ? `; Expires=${expires.toUTCString()}` : '';
  return `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${encrypted ? '; Secure' : ''}${until}`;
}

/** Of a login at the provider that has begun. Strict as well: the page that the provider leads back to sends it, not its request. */
export const BEGUN_COOKIE = 'trivet_begun';
const BEGUN_PATH = '/api/v1/session/provider';

export const begunCookie = (sealed: string, encrypted: boolean, seconds: number): string =>
  `${BEGUN_COOKIE}=${sealed}; Path=${BEGUN_PATH}; HttpOnly; SameSite=Strict${encrypted ? '; Secure' : ''}; Max-Age=${seconds}`;
