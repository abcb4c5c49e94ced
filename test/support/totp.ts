import { Secret, TOTP } from 'otpauth';

/** What an authenticator app shows, `steps` of 30 s from now. @param secret in base32 */
export const codeNow = (secret: string, steps = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + steps * 30_000 });
