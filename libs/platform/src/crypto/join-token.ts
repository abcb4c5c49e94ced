import type { X509Certificate } from 'node:crypto';

const FINGERPRINT = /^[A-Za-z0-9_-]{43}$/;

/** What an administrator gives a cluster: a secret, and by what the authority is known before anybody is told that secret. */
export interface JoinToken {
  secret: string;
  /** `fingerprintOf` the authority's certificate. */
  fingerprint: string;
}

export const formJoinToken = ({ secret, fingerprint }: JoinToken): string => `${secret}.${fingerprint}`;

/** undefined: it is none. */
export function readJoinToken(text: string): JoinToken | undefined {
  const [secret = '', fingerprint = '', ...more] = text.trim().split('.');
  return secret !== '' && FINGERPRINT.test(fingerprint) && more.length === 0 ? { secret, fingerprint } : undefined;
}

/** SHA-256 of a certificate, base64url. */
export const fingerprintOf = ({ fingerprint256 }: Pick<X509Certificate, 'fingerprint256'>): string =>
  Buffer.from(fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
