import { z } from 'zod';
import { id } from '#admin/contract/common';
import { code, passkey, password } from '#admin/contract/factor-forms';
import { route } from '#admin/contract/route';
import { me } from '#admin/contract/session';

const tag = 'session';
const sent = (most: number, description: string) =>
  z
    .string()
    .max(most)
    .regex(/^[A-Za-z0-9_-]+$/, 'expected base64url without padding')
    .meta({ description: `${description}, in base64url` });
const credential = sent(1_400, 'Id of the passkey');
const clientData = sent(4_096, '`clientDataJSON` of the browser');

const options = z
  .object({
    options: z
      .record(z.string(), z.unknown())
      .meta({ description: 'What the browser’s WebAuthn is given, as JSON; good once, for five minutes' }),
  })
  .meta({ id: 'PasskeyOptions' });

const stepUp = z.strictObject({
  password,
  code: code.optional().meta({ description: 'Of a user with an authenticator app: six digits, or a recovery code' }),
});

/** Logins by WebAuthn; the forms are the browser's. */
export const passkeyRoutes = {
  available: route({
    id: 'getPasskeyLogin',
    method: 'GET',
    path: '/session/passkey',
    tag,
    summary: 'Whether people log in by passkeys here',
    access: { scope: 'public' },
    status: 200,
    reply: z
      .object({
        host: z.string().nullable().meta({ description: 'The host name that passkeys are of; null: there are none' }),
      })
      .meta({ id: 'PasskeyLogin' }),
    examples: [{ name: 'what the page shows' }],
  }),
  beginLogin: route({
    id: 'beginPasskeyLogin',
    method: 'POST',
    path: '/session/passkey/options',
    tag,
    summary: 'Begin a login by a passkey: what the browser is asked to sign',
    description:
      'It names nobody: the passkey says whose it is. Refused (409) where TRIVET_PUBLIC_URL has no host name.',
    access: { scope: 'public' },
    status: 200,
    reply: options,
    refusals: [409, 429],
    examples: [{ name: 'before the browser asks' }],
  }),
  login: route({
    id: 'loginByPasskey',
    method: 'POST',
    path: '/session/passkey',
    tag,
    summary: 'End a login by a passkey: sets the cookie of a login',
    description: 'The authenticator has verified the person, so no code is asked for. One answer is one try.',
    access: { scope: 'public' },
    body: z.strictObject({
      id: credential,
      clientData,
      authenticatorData: sent(4_096, '`authenticatorData` of the authenticator'),
      signature: sent(2_048, 'Its signature'),
    }),
    status: 200,
    reply: me,
    cookie: true,
    refusals: [409],
    examples: [
      {
        name: 'what it signed',
        body: { id: 'AAAA', clientData: 'AAAA', authenticatorData: 'AAAA', signature: 'AAAA' },
      },
    ],
  }),
  beginAdding: route({
    id: 'beginPasskey',
    method: 'POST',
    path: '/session/passkeys/options',
    tag,
    summary: 'Begin to add a passkey: takes the password, and a code where one is asked for',
    access: { scope: 'self' },
    body: stepUp,
    status: 200,
    reply: options,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'of whoever calls', body: { password: '{password}' } }],
  }),
  add: route({
    id: 'addPasskey',
    method: 'POST',
    path: '/session/passkeys',
    tag,
    summary: 'Add the passkey that the browser has made',
    access: { scope: 'self' },
    body: z.strictObject({
      name: z.string().trim().min(1).max(64).meta({ description: 'By which its owner knows it, such as the device' }),
      id: credential,
      clientData,
      attestation: sent(16_384, '`attestationObject` of the authenticator'),
    }),
    status: 200,
    reply: passkey,
    repeats: false,
    refusals: [409],
    examples: [{ name: 'of a laptop', body: { name: 'laptop', id: 'AAAA', clientData: 'AAAA', attestation: 'AAAA' } }],
  }),
  remove: route({
    id: 'removePasskey',
    method: 'POST',
    path: '/session/passkeys/{passkey}/remove',
    tag,
    summary: 'Remove one of one’s own passkeys: takes the password, and a code where one is asked for',
    access: { scope: 'self' },
    params: z.strictObject({ passkey: id }),
    body: stepUp,
    status: 204,
    repeats: false,
    examples: [
      { name: 'of a device that was lost', params: { passkey: '{passkey}' }, body: { password: '{password}' } },
    ],
  }),
};
