import { z } from 'zod';
import { tenantName, time } from '#admin/contract/common';
import { ROLES, route } from '#admin/contract/route';

const tag = 'session';

export const me = z
  .object({
    username: z.string().meta({ description: 'As it logs in', examples: ['ann@acme'] }),
    tenant: tenantName,
    appliance: z
      .boolean()
      .meta({ description: 'Administers the appliance: sees and, by its role, changes all tenants' }),
    role: z.enum(ROLES).meta({ description: 'viewer looks, operator works, admin decides' }),
    token: z
      .string()
      .nullable()
      .meta({ description: 'Name of the API token that was sent; null for a login at the page' }),
    expiresAt: time.nullable().meta({ description: 'When the login or token ends; null: when it is revoked' }),
    csrf: z
      .string()
      .nullable()
      .meta({ description: 'Sent back as x-csrf-token with every change; null for an API token' }),
  })
  .meta({ id: 'Me' });
export type Me = z.output<typeof me>;

export const sessionRoutes = {
  login: route({
    id: 'login',
    method: 'POST',
    path: '/session',
    tag,
    summary: 'Log in at the page: sets an httpOnly cookie',
    description:
      'Of a user with a second factor the right password alone is refused with the code `second_factor_required`: send it again with `code`. A wrong code counts as a wrong password.',
    access: { scope: 'public' },
    body: z.strictObject({
      username: z.string().min(1).max(200).meta({ description: 'name@tenant' }),
      password: z.string().min(1).max(256).meta({ format: 'password', description: 'Its password' }),
      code: z
        .string()
        .min(6)
        .max(40)
        .optional()
        .meta({ description: 'Of a user with a second factor: six digits of the app, or a recovery code' }),
    }),
    status: 200,
    reply: me,
    cookie: true,
    examples: [{ name: 'an administrator of the appliance', body: { username: '{username}', password: '{password}' } }],
  }),
  provider: route({
    id: 'getProvider',
    method: 'GET',
    path: '/session/provider',
    tag,
    summary: 'Whether people log in by an OpenID Connect provider, besides passwords',
    access: { scope: 'public' },
    status: 200,
    reply: z
      .object({ name: z.string().nullable().meta({ description: 'Of the provider; null: there is none' }) })
      .meta({ id: 'Provider' }),
    examples: [{ name: 'what the page shows' }],
  }),
  beginProvider: route({
    id: 'beginProviderLogin',
    method: 'POST',
    path: '/session/provider',
    tag,
    summary: 'Begin a login at the provider: sets a cookie that is good for ten minutes',
    access: { scope: 'public' },
    status: 200,
    reply: z
      .object({ location: z.string().meta({ description: 'Where the browser goes' }) })
      .meta({ id: 'ProviderLogin' }),
    cookie: true,
    refusals: [409],
    examples: [{ name: 'before the browser goes there' }],
  }),
  finishProvider: route({
    id: 'finishProviderLogin',
    method: 'POST',
    path: '/session/provider/login',
    tag,
    summary: 'End a login at the provider: sets the cookie of a login',
    access: { scope: 'public' },
    body: z.strictObject({
      answer: z
        .string()
        .max(8_192)
        .meta({ description: 'The query that the provider sent the browser back with, as it is' }),
    }),
    status: 200,
    reply: me,
    cookie: true,
    refusals: [409],
    examples: [{ name: 'after the browser came back', body: { answer: '{answer}' } }],
  }),
  me: route({
    id: 'me',
    method: 'GET',
    path: '/session',
    tag,
    summary: 'Who is calling, and with what rights',
    access: { scope: 'self' },
    status: 200,
    reply: me,
    examples: [{ name: 'whose token is this' }],
  }),
  logout: route({
    id: 'logout',
    method: 'DELETE',
    path: '/session',
    tag,
    summary: 'End the login; an API token is not revoked by it',
    access: { scope: 'self' },
    status: 204,
    examples: [{ name: 'log out' }],
  }),
  changePassword: route({
    id: 'changePassword',
    method: 'POST',
    path: '/session/password',
    tag,
    summary: "Change one's own password; ends all other logins, keeps API tokens",
    access: { scope: 'self' },
    body: z.strictObject({
      password: z.string().min(1).max(256).meta({ format: 'password', description: 'The one until now' }),
      newPassword: z.string().min(8).max(256).meta({ format: 'password', description: 'The one from now on' }),
      code: z.string().min(6).max(40).optional().meta({
        description:
          'Six digits of the app, or a recovery code: an API token of a user with a second factor needs one (`second_factor_required`)',
      }),
    }),
    status: 204,
    examples: [{ name: 'another one', body: { password: '{password}', newPassword: '{password}' } }],
  }),
};
