import { call } from './client';

/** Comes with the first use: `navigator.credentials` gives and takes bytes, and the API text. */
const library = () => import('@simplewebauthn/browser');

type Options<K extends 'create' | 'get'> = Parameters<
  Awaited<ReturnType<typeof library>>[K extends 'create' ? 'startRegistration' : 'startAuthentication']
>[0]['optionsJSON'];

/** Asks the browser for a passkey, and logs in by it. */
export async function logInByPasskey() {
  const [{ data }, { startAuthentication }] = await Promise.all([
    call('POST', '/session/passkey/options', {}),
    library(),
  ]);
  const { id, response } = await startAuthentication({ optionsJSON: data.options as unknown as Options<'get'> });
  const { clientDataJSON: clientData, authenticatorData, signature } = response;
  return call('POST', '/session/passkey', { body: { id, clientData, authenticatorData, signature } });
}

/** Has the browser make a passkey, and keeps it under that name. */
export async function addPasskey(name: string, stepUp: { password: string; code?: string }): Promise<void> {
  const [{ data }, { startRegistration }] = await Promise.all([
    call('POST', '/session/passkeys/options', { body: stepUp }),
    library(),
  ]);
  const { id, response } = await startRegistration({ optionsJSON: data.options as unknown as Options<'create'> });
  const { clientDataJSON: clientData, attestationObject: attestation } = response;
  await call('POST', '/session/passkeys', { body: { name, id, clientData, attestation } });
}
