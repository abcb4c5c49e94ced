import { createHash, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';

/** RFC 6238 as every authenticator app has it: SHA-1, six digits, 30 seconds. */
const PERIOD_SECONDS = 30;
/** Steps that a clock may be off, to either side. */
const WINDOW = 1;
/** Of the secret, as RFC 4226 recommends. */
const SECRET_BYTES = 20;

/** In base32, as people type it. */
export const newTotpSecret = (): string =>
  new Secret({ buffer: new Uint8Array(randomBytes(SECRET_BYTES)).buffer }).base32;

const totpOf = (secret: string, issuer = '', label = ''): TOTP =>
  new TOTP({ issuer, label, secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: PERIOD_SECONDS });

/** What the QR code says: `otpauth://totp/...`. */
export const totpUri = (secret: string, issuer: string, username: string): string =>
  totpOf(secret, issuer, username).toString();

/** The time step of the code; undefined: it is none of now, or of a step that was used. */
export function stepOfCode(secret: string, code: string, usedStep: number, now = Date.now()): number | undefined {
  if (!isTotpCode(code)) return undefined;
  const delta = totpOf(secret).validate({ token: code, timestamp: now, window: WINDOW });
  if (delta === null) return undefined;
  const step = Math.floor(now / 1_000 / PERIOD_SECONDS) + delta;
  return step > usedStep ? step : undefined;
}

export const isTotpCode = (code: string): boolean => /^\d{6}$/.test(code);

const RECOVERY_CODES = 10;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** Sixteen of 32 letters each, 80 random bits: `abcd-efgh-ijkl-mnop`. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const letters = Array.from(randomBytes(16), byte => LETTERS[byte & 31]!).join('');
    return letters.match(/.{4}/g)!.join('-');
  });
}

/** Of so many random bits a fast hash gives nothing away. undefined: it has not the form of one. */
export function hashOfRecoveryCode(code: string): Buffer | undefined {
  const letters = code.toLowerCase().replace(/[\s-]/g, '');
  return /^[a-z2-7]{16}$/.test(letters) ? createHash('sha256').update(letters).digest() : undefined;
}
