import { COOKIE } from '#admin/admin.guard';

/** Strict: it goes along with no request that another site begins. No script can read it. */
export function sessionCookie(token: string, encrypted: boolean, expires?: Date): string {
  const until = expires ? `; Expires=${expires.toUTCString()}` : '';
  return `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict${encrypted ? '; Secure' : ''}${until}`;
}
