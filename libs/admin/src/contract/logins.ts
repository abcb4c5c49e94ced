import { z } from 'zod';
import { id, name, ofTenant, pageOf, paging, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

export const login = z
  .object({
    id,
    current: z.boolean().meta({ description: 'The one that asks' }),
    openedBy: z.enum(['password', 'totp', 'recovery', 'passkey', 'provider']).nullable().meta({
      description:
        'By what somebody proved who they are: totp and recovery are a password with a code; null: before this was written down',
    }),
    address: z.string().meta({ description: 'Where from, at the login' }),
    userAgent: z.string().meta({ description: 'The browser, as it named itself at the login; may be empty' }),
    createdAt: time,
    lastUsedAt: time.nullable().meta({ description: 'null: never; at most minutes old' }),
    expiresAt: time.meta({ description: 'It ends then, used or not' }),
  })
  .meta({ id: 'Login' });
export type LoginReply = z.output<typeof login>;

const ended = z
  .object({ ended: z.int().nonnegative().meta({ description: 'Logins that have ended by it' }) })
  .meta({ id: 'EndedLogins' });
const ofUser = ofTenant.extend({ user: name });
const BOUND =
  'Refused at once by the gateway that ends it, within 5 s by any other. API tokens are no logins, and stay.';

/** Of oneself, and by an administrator of others. */
export const loginRoutes = {
  listOwn: route({
    id: 'listOwnLogins',
    method: 'GET',
    path: '/session/logins',
    tag: 'session',
    summary: "One's own logins at the page that have not ended, newest first",
    access: { scope: 'self' },
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(login),
    examples: [{ name: 'all' }],
  }),
  endOwn: route({
    id: 'endOwnLogin',
    method: 'DELETE',
    path: '/session/logins/{login}',
    tag: 'session',
    summary: "End one of one's own logins",
    description: BOUND,
    access: { scope: 'self' },
    params: z.strictObject({ login: id }),
    status: 204,
    examples: [{ name: 'of a browser that was left behind', params: { login: '{login}' } }],
  }),
  endOthers: route({
    id: 'endOtherLogins',
    method: 'DELETE',
    path: '/session/logins',
    tag: 'session',
    summary: "End all of one's own logins but the one that asks; by an API token all of them",
    description: BOUND,
    access: { scope: 'self' },
    status: 200,
    reply: ended,
    examples: [{ name: 'all others' }],
  }),
  list: route({
    id: 'listLogins',
    method: 'GET',
    path: '/tenants/{tenant}/users/{user}/logins',
    tag: 'users',
    summary: 'Logins of a user at the page that have not ended, newest first',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofUser,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(login),
    examples: [{ name: 'all', params: { tenant: '{tenant}', user: '{user}' } }],
  }),
  endAll: route({
    id: 'endLogins',
    method: 'DELETE',
    path: '/tenants/{tenant}/users/{user}/logins',
    tag: 'users',
    summary: 'End all logins of a user at the page',
    description: BOUND,
    access: { scope: 'tenant', role: 'admin' },
    params: ofUser,
    status: 200,
    reply: ended,
    examples: [{ name: 'all', params: { tenant: '{tenant}', user: '{user}' } }],
  }),
};
