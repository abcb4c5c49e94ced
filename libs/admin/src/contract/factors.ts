import { z } from 'zod';
import { name, ofTenant, time } from '#admin/contract/common';
import { code, passkey, password } from '#admin/contract/factor-forms';
import { route } from '#admin/contract/route';

const tag = 'session';
const stepUp = z.strictObject({ password, code });

const factors = z
  .object({
    totp: z
      .object({ since: time.meta({ description: 'Since when a login by password asks for a code' }) })
      .nullable()
      .meta({ description: 'null: a password is enough' }),
    passkeys: z.array(passkey).meta({ description: 'Each a login by itself, without password and code' }),
    recoveryCodes: z.int().nonnegative().meta({ description: 'Recovery codes that are left' }),
  })
  .meta({ id: 'Factors' });

const begunTotp = z
  .object({
    secret: z.string().meta({ description: 'In base32, to be typed into an app; shown this once' }),
    uri: z.string().meta({ description: '`otpauth://totp/...`: what the QR code says' }),
  })
  .meta({ id: 'BegunTotp' });

const recoveryCodes = z
  .object({
    recoveryCodes: z.array(z.string()).meta({ description: 'Each in the place of a code, once; shown this once' }),
  })
  .meta({ id: 'RecoveryCodes' });

/** What is asked for besides a password (RFC 6238). */
export const factorRoutes = {
  get: route({
    id: 'getFactors',
    method: 'GET',
    path: '/session/factors',
    tag,
    summary: 'What a login by password asks for besides it',
    access: { scope: 'self' },
    status: 200,
    reply: factors,
    examples: [{ name: 'of whoever calls' }],
  }),
  beginTotp: route({
    id: 'beginTotp',
    method: 'POST',
    path: '/session/factors/totp',
    tag,
    summary: 'Begin a second factor: gives the secret for an app',
    description:
      'Nothing is asked for before it is confirmed with a code, within 15 minutes; another beginning takes its place. Refused (409) while drivers log in as this user: they cannot send codes.',
    access: { scope: 'self' },
    body: z.strictObject({ password }),
    status: 200,
    reply: begunTotp,
    secret: true,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'for an app', body: { password: '{password}' } }],
  }),
  confirmTotp: route({
    id: 'confirmTotp',
    method: 'POST',
    path: '/session/factors/totp/confirm',
    tag,
    summary: 'Prove the second factor by a code: from now on it is asked for; gives the recovery codes',
    description: 'All other logins of the user end. API tokens stay, and are never asked for codes.',
    access: { scope: 'self' },
    body: z.strictObject({ code }),
    status: 200,
    reply: recoveryCodes,
    secret: true,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'what the app shows', body: { code: '{code}' } }],
  }),
  renewRecoveryCodes: route({
    id: 'renewRecoveryCodes',
    method: 'POST',
    path: '/session/factors/recovery-codes',
    tag,
    summary: 'Other recovery codes, in the place of those before',
    access: { scope: 'self' },
    body: stepUp,
    status: 200,
    reply: recoveryCodes,
    secret: true,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'when few are left', body: { password: '{password}', code: '{code}' } }],
  }),
  removeTotp: route({
    id: 'removeTotp',
    method: 'POST',
    path: '/session/factors/totp/remove',
    tag,
    summary: 'Take the second factor away, with its recovery codes: takes the password and a code',
    access: { scope: 'self' },
    body: stepUp,
    status: 204,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'for another phone', body: { password: '{password}', code: '{code}' } }],
  }),
  reset: route({
    id: 'resetFactors',
    method: 'DELETE',
    path: '/tenants/{tenant}/users/{user}/factors',
    tag: 'users',
    summary: 'Take the second factors of a user away who has lost them; its logins end',
    description: 'Not one’s own: those go with a code. Its password alone counts again, so make sure who asks.',
    access: { scope: 'tenant', role: 'admin' },
    params: ofTenant.extend({ user: name }),
    status: 204,
    examples: [{ name: 'a lost phone', params: { tenant: '{tenant}', user: '{user}' } }],
  }),
};
