import { z } from 'zod';
import { decodeSealed, encodeSealed, type SecretBox } from '#platform/crypto/secrets';

/** How long somebody may stay at the provider's pages. */
export const LOGIN_SECONDS = 600;

const begun = z.object({ state: z.string(), nonce: z.string(), verifier: z.string(), until: z.number() });
/** What the answer of the provider must fit. `until`: milliseconds since the epoch. */
export type Begun = z.output<typeof begun>;

/** No row: the gateway that the answer comes to may be another one, and needs the same key file alone. */
const PLACE = { tenantId: '', table: 'cookie', rowId: '', column: 'login' };

export const sealLogin = (secrets: SecretBox, login: Begun): string =>
  encodeSealed(secrets.seal(JSON.stringify(login), PLACE)).toString('base64url');

/** undefined: forged, broken, of another appliance, or too old. */
export function openLogin(secrets: SecretBox, sealed: string, now = Date.now()): Begun | undefined {
  try {
    const login = begun.parse(JSON.parse(secrets.openText(decodeSealed(Buffer.from(sealed, 'base64url')), PLACE)));
    return now < login.until ? login : undefined;
  } catch {
    return undefined;
  }
}
