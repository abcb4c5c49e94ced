import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Keyring } from '#platform/crypto/kek';
import { StorageError } from '#platform/errors';

/**
 * Secrets at rest. Each is encrypted with AES-256-GCM under a random data key of its own; the data key is encrypted
 * likewise under a key-encryption key. Both carry where the secret lives as associated data, so that a ciphertext
 * moved to another tenant, table, row or column does not open. Rotation wraps the data key again and leaves the
 * ciphertext alone.
 */
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const WRAPPED_BYTES = IV_BYTES + KEY_BYTES + TAG_BYTES;
const VERSION = 1;

/** Where a secret lives: part of what is authenticated. */
export interface SecretPlace {
  tenantId: string;
  table: string;
  rowId: string;
  column: string;
}

export interface Sealed {
  kekId: string;
  /** iv, encrypted data key, tag. */
  wrappedKey: Buffer;
  iv: Buffer;
  ciphertext: Buffer;
  tag: Buffer;
}

const placeName = (place: SecretPlace) => `${place.table}.${place.column}`;

/** Each part with its length in front: no two places give the same bytes. */
function associatedData(purpose: string, parts: readonly string[]): Buffer {
  const chunks: Buffer[] = [];
  for (const part of ['trivet', purpose, ...parts]) {
    const bytes = Buffer.from(part, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    chunks.push(length, bytes);
  }
  return Buffer.concat(chunks);
}

const valueData = (place: SecretPlace) =>
  associatedData('value', [place.tenantId, place.table, place.rowId, place.column]);
const keyData = (place: SecretPlace, kekId: string) =>
  associatedData('key', [place.tenantId, place.table, place.rowId, place.column, kekId]);

function encrypt(key: Buffer, aad: Buffer, plaintext: Uint8Array) {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(aad);
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return { iv, ciphertext, tag: cipher.getAuthTag() };
}

function decrypt(key: Buffer, aad: Buffer, iv: Buffer, ciphertext: Buffer, tag: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
}

/** Seals and opens under the keys of a keyring. Failures are StorageError `internal`, and quote nothing sealed. */
export class SecretBox {
  constructor(private readonly keyring: Keyring) {}

  seal(plaintext: string | Uint8Array, place: SecretPlace): Sealed {
    const dataKey = randomBytes(KEY_BYTES);
    try {
      const bytes = typeof plaintext === 'string' ? Buffer.from(plaintext, 'utf8') : plaintext;
      const { iv, ciphertext, tag } = encrypt(dataKey, valueData(place), bytes);
      return { ...this.wrap(dataKey, place), iv, ciphertext, tag };
    } finally {
      dataKey.fill(0);
    }
  }

  open(sealed: Sealed, place: SecretPlace): Buffer {
    const dataKey = this.unwrap(sealed, place);
    try {
      return decrypt(dataKey, valueData(place), sealed.iv, sealed.ciphertext, sealed.tag);
    } catch {
      throw this.damaged(place);
    } finally {
      dataKey.fill(0);
    }
  }

  openText(sealed: Sealed, place: SecretPlace): string {
    return this.open(sealed, place).toString('utf8');
  }

  /** The same secret under the current key; what is under it already comes back as it is. */
  rewrap(sealed: Sealed, place: SecretPlace): Sealed {
    if (!this.needsRewrap(sealed)) return sealed;
    const dataKey = this.unwrap(sealed, place);
    try {
      return { ...sealed, ...this.wrap(dataKey, place) };
    } finally {
      dataKey.fill(0);
    }
  }

  needsRewrap(sealed: Sealed): boolean {
    return sealed.kekId !== this.keyring.currentId;
  }

  private wrap(dataKey: Buffer, place: SecretPlace): Pick<Sealed, 'kekId' | 'wrappedKey'> {
    const kekId = this.keyring.currentId;
    const { iv, ciphertext, tag } = encrypt(this.keyring.current, keyData(place, kekId), dataKey);
    return { kekId, wrappedKey: Buffer.concat([iv, ciphertext, tag]) };
  }

  private unwrap({ kekId, wrappedKey }: Sealed, place: SecretPlace): Buffer {
    const key = this.keyring.get(kekId);
    if (!key) {
      throw new StorageError(
        'internal',
        `${placeName(place)} was sealed with key ${kekId}, which TRIVET_KEK_FILE does not hold: put it back and restart`,
      );
    }
    try {
      const iv = wrappedKey.subarray(0, IV_BYTES);
      const encrypted = wrappedKey.subarray(IV_BYTES, IV_BYTES + KEY_BYTES);
      return decrypt(key, keyData(place, kekId), iv, encrypted, wrappedKey.subarray(IV_BYTES + KEY_BYTES));
    } catch {
      throw this.damaged(place);
    }
  }

  private damaged(place: SecretPlace): StorageError {
    return new StorageError(
      'internal',
      `a secret in ${placeName(place)} does not open: it was changed, belongs to another row, or was sealed with another key of the same id`,
    );
  }
}

/** For a bytea column: version, length of the key id, key id, wrapped key, iv, tag, ciphertext. */
export function encodeSealed(sealed: Sealed): Buffer {
  const id = Buffer.from(sealed.kekId, 'utf8');
  return Buffer.concat([
    Buffer.from([VERSION, id.length]),
    id,
    sealed.wrappedKey,
    sealed.iv,
    sealed.tag,
    sealed.ciphertext,
  ]);
}

export function decodeSealed(bytes: Buffer): Sealed {
  const idLength = bytes[1] ?? 0;
  const start = 2 + idLength;
  const ciphertextAt = start + WRAPPED_BYTES + IV_BYTES + TAG_BYTES;
  if (bytes[0] !== VERSION) throw new StorageError('internal', 'a sealed secret has an unknown version');
  if (idLength === 0 || bytes.length < ciphertextAt) throw new StorageError('internal', 'a sealed secret is cut off');
  let at = start;
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const wrappedKey = take(WRAPPED_BYTES);
  const iv = take(IV_BYTES);
  const tag = take(TAG_BYTES);
  return {
    kekId: bytes.toString('utf8', 2, start),
    wrappedKey,
    iv,
    tag,
    ciphertext: bytes.subarray(ciphertextAt),
  };
}
