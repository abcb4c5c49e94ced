import { z } from 'zod';
import { id, name, ofTenant, pageOf, paging, time } from '#admin/contract/common';
import { ROLES, route } from '#admin/contract/route';

const tag = 'users';
const ofUser = ofTenant.extend({ user: name });
const password = z.string().min(8).max(256).meta({ format: 'password', description: 'At least 8 letters' });
/** Users of the appliance's own tenant, `appliance`, administer the appliance. */
export const user = z
  .object({
    id,
    name,
    username: z.string().meta({ description: 'As it logs in', examples: ['ann@acme'] }),
    role: z.enum(ROLES).meta({ description: 'viewer looks, operator works, admin decides' }),
    state: z.enum(['active', 'disabled']).meta({ description: 'disabled: it cannot log in' }),
    identity: z
      .object({
        issuer: z.string().meta({ description: 'Address of the provider' }),
        subject: z.string().meta({ description: '`sub` of the person there' }),
      })
      .nullable()
      .meta({ description: 'By which an OpenID Connect provider knows them; null: they are not linked' }),
    createdAt: time,
    updatedAt: time,
    tokens: z.int().meta({ description: 'API tokens that are live' }),
  })
  .meta({ id: 'User' });
export type UserReply = z.output<typeof user>;

export const apiToken = z
  .object({
    id,
    name,
    user: z.string().meta({ description: 'Name of its user' }),
    role: z.enum(ROLES).meta({ description: 'At most that of its user' }),
    createdAt: time,
    lastUsedAt: time.nullable().meta({ description: 'null: never; at most minutes old' }),
    expiresAt: time.nullable().meta({ description: 'null: until it is revoked' }),
  })
  .meta({ id: 'ApiToken' });
export type ApiTokenReply = z.output<typeof apiToken>;

export const userRoutes = {
  list: route({
    id: 'listUsers',
    method: 'GET',
    path: '/tenants/{tenant}/users',
    tag,
    summary: 'Users of a tenant',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(user),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  create: route({
    id: 'createUser',
    method: 'POST',
    path: '/tenants/{tenant}/users',
    tag,
    summary: 'Make a user',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant,
    body: z.strictObject({
      name: z
        .string()
        .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected 1 to 64 of a-z, 0-9 and . _ -, a letter or digit first')
        .meta({ description: 'As it logs in, before @ and the tenant' }),
      role: z.enum(ROLES).meta({ description: 'viewer looks, operator works, admin decides' }),
      password,
    }),
    status: 201,
    reply: user,
    etag: 'gives',
    refusals: [409],
    examples: [
      {
        name: 'an operator',
        params: { tenant: '{tenant}' },
        body: { name: 'bob', role: 'operator', password: '{password}' },
      },
    ],
  }),
  get: route({
    id: 'getUser',
    method: 'GET',
    path: '/tenants/{tenant}/users/{user}',
    tag,
    summary: 'One user',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofUser,
    status: 200,
    reply: user,
    etag: 'gives',
    examples: [{ name: 'one', params: { tenant: '{tenant}', user: '{user}' } }],
  }),
  change: route({
    id: 'changeUser',
    method: 'PATCH',
    path: '/tenants/{tenant}/users/{user}',
    tag,
    summary: 'Give a user another role, password or identity, disable or enable it',
    description:
      'Another password or identity, and disabling, end its logins and the tokens of its drivers; API tokens rest while it is disabled.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofUser,
    body: z.strictObject({
      role: z.enum(ROLES).optional().meta({ description: 'viewer looks, operator works, admin decides' }),
      state: z.enum(['active', 'disabled']).optional().meta({ description: 'disabled: it cannot log in' }),
      password: password.optional(),
      subject: z
        .string()
        .regex(/^[\x20-\x7e]{1,255}$/, 'expected 1 to 255 printable characters of ASCII')
        .nullable()
        .optional()
        .meta({
          description:
            '`sub` of the person at the OpenID Connect provider; null: unlink. Set by administrators of the appliance alone',
        }),
    }),
    status: 200,
    reply: user,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'look only', params: { tenant: '{tenant}', user: '{user}' }, body: { role: 'viewer' } }],
  }),
  delete: route({
    id: 'deleteUser',
    method: 'DELETE',
    path: '/tenants/{tenant}/users/{user}',
    tag,
    summary: 'Delete a user with its logins and tokens; the last administrator stays',
    access: { scope: 'tenant', role: 'admin' },
    params: ofUser,
    status: 204,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', user: '{user}' } }],
  }),
};

const newApiToken = apiToken
  .extend({ token: z.string().meta({ description: 'The secret; shown this once' }) })
  .meta({ id: 'NewApiToken' });
const ofToken = ofTenant.extend({ token: id });

export const tokenRoutes = {
  list: route({
    id: 'listTokens',
    method: 'GET',
    path: '/tenants/{tenant}/tokens',
    tag: 'tokens',
    summary: 'API tokens of all users of a tenant',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging, user: name.optional() }),
    status: 200,
    reply: pageOf(apiToken),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  create: route({
    id: 'createToken',
    method: 'POST',
    path: '/tenants/{tenant}/tokens',
    tag: 'tokens',
    summary: 'Make an API token for oneself; an administrator makes one for anybody',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    body: z.strictObject({
      name: z
        .string()
        .regex(
          /^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$/,
          'expected 1 to 64 of letters, digits, blanks and . _ -, a letter or digit first',
        )
        .meta({ description: 'Tells it from the other tokens of its user' }),
      user: name.optional().meta({ description: 'Whose; oneself when absent' }),
      role: z.enum(ROLES).meta({ description: 'At most that of its user' }),
      expiresInDays: z.int().min(1).max(3_650).optional().meta({ description: 'Absent: until it is revoked' }),
    }),
    status: 201,
    reply: newApiToken,
    secret: true,
    refusals: [409],
    examples: [
      {
        name: 'for a script',
        params: { tenant: '{tenant}' },
        body: { name: 'ci', user: '{user}', role: 'viewer', expiresInDays: 90 },
      },
    ],
  }),
  rotate: route({
    id: 'rotateToken',
    method: 'POST',
    path: '/tenants/{tenant}/tokens/{token}/rotate',
    tag: 'tokens',
    summary: "Make another token in the place of one; one's own, an administrator anybody's",
    description:
      'The new one has its name, user and role. The former, called `NAME (former)`, works until the grace is over. While there is one, only a rotation without grace is accepted: it ends both. If its answer is lost, revoke the new one and rotate the former with expiresInDays; without, the next one lives no longer than the former was let in. One that has ended, or may more than its user by now, is refused (409).',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofToken,
    body: z.strictObject({
      graceSeconds: z
        .int()
        .min(0)
        .max(31_536_000)
        .default(86_400)
        .meta({ description: 'So long the former works beside the new one; 0: it ends at once' }),
      expiresInDays: z
        .int()
        .min(1)
        .max(3_650)
        .optional()
        .meta({ description: 'Of the new one; absent: as long as the former was made for' }),
    }),
    status: 201,
    reply: newApiToken,
    secret: true,
    refusals: [409],
    examples: [{ name: 'one', params: { tenant: '{tenant}', token: '{token}' }, body: { graceSeconds: 3_600 } }],
  }),
  revoke: route({
    id: 'revokeToken',
    method: 'DELETE',
    path: '/tenants/{tenant}/tokens/{token}',
    tag: 'tokens',
    summary: "Revoke a token; one's own, an administrator anybody's",
    access: { scope: 'tenant', role: 'viewer' },
    params: ofToken,
    status: 204,
    examples: [{ name: 'one', params: { tenant: '{tenant}', token: '{token}' } }],
  }),
};
