import { decodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { ObjectNeeds } from '#storage/shared/backend-directory';

/**
 * The one key of an account, the same on every repeat: random, and stored sealed before it exists at the backend; where the store
 * issues it, before anybody is told.
 */
export interface AccessCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** In place of the key, where the store signs for each bucket: kept once its policy stands. */
  token?: string;
}

/** What definitions of operations that act as the holder of a key are carried out with. */
export interface AccessNeeds extends ObjectNeeds {
  secrets: SecretBox;
}

/** Where the key is sealed. */
export const credentialsPlace = (tenantId: string, accessId: string) => ({
  tenantId,
  table: 'access',
  rowId: accessId,
  column: 'credentials',
});

export const openCredentials = (
  secrets: SecretBox,
  tenantId: string,
  accessId: string,
  sealed: Buffer,
): AccessCredentials =>
  JSON.parse(secrets.openText(decodeSealed(sealed), credentialsPlace(tenantId, accessId))) as AccessCredentials;
