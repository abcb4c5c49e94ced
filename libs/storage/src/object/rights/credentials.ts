import { randomBytes } from 'node:crypto';
import type { StoreTraits } from '#backends/object-backend';
import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

/**
 * The key of an account, the same on every repeat until it is changed: random, and stored sealed before it exists at the backend;
 * where the store issues it, before anybody is told.
 */
export interface AccessCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** In place of the key, where the store signs for each bucket: kept once its policy stands. */
  token?: string;
  /** The name that it was signed under; absent: the account's. */
  signedAs?: string;
  /** When it ends by itself; ISO 8601. */
  expiresAt?: string;
}

/** What definitions of operations that act as the holder of a key are carried out with. */
export interface AccessNeeds extends ObjectNeeds {
  secrets: SecretBox;
}

/** The key that Grant answers; the one before it, while that is still let in; the one that is to come after it. */
export type KeyName = 'credentials' | 'former' | 'next';

/** Where the key is sealed. */
export const credentialsPlace = (tenantId: string, accessId: string, name: KeyName = 'credentials') => ({
  tenantId,
  table: 'access',
  rowId: accessId,
  column: name,
});

export const openCredentials = (
  secrets: SecretBox,
  tenantId: string,
  accessId: string,
  sealed: Buffer,
  name: KeyName = 'credentials',
): AccessCredentials =>
  JSON.parse(secrets.openText(decodeSealed(sealed), credentialsPlace(tenantId, accessId, name))) as AccessCredentials;

const KEY_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/**
 * In AWS's shapes: a 20-character key id of 32 symbols each, a 40-character secret of 240 random bits. Garage takes its own alone:
 * 96 random bits of an id, 256 of a secret.
 */
export function newCredentials({ hexKeys }: StoreTraits): AccessCredentials {
  if (hexKeys)
    return { accessKeyId: `GK${randomBytes(12).toString('hex')}`, secretAccessKey: randomBytes(32).toString('hex') };
  const id = [...randomBytes(18)].map(byte => KEY_ALPHABET[byte & 31]).join('');
  return { accessKeyId: `TV${id}`, secretAccessKey: randomBytes(30).toString('base64url') };
}
