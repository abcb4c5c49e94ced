import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { ConfigError } from '#platform/config/config';

const KEY_BYTES = 32;
const VARIABLE = 'TRIVET_KEK_FILE';

/**
 * Key-encryption keys. The file holds one `id:base64` line a key of 32 bytes, or a bare base64 line, whose id follows
 * from the key; blank lines and lines with # are skipped. The first key seals, the others still open: rotation puts a
 * new line on top, rewraps, and then removes the old line. Whoever loses the file loses every stored secret.
 */
export class Keyring {
  private readonly keys: ReadonlyMap<string, Buffer>;
  readonly currentId: string;

  constructor(keys: readonly { id: string; key: Buffer }[]) {
    const first = keys[0];
    if (!first) throw new ConfigError(`${VARIABLE}: no key in it; make one with: openssl rand -base64 32`);
    this.currentId = first.id;
    this.keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  get current(): Buffer {
    return this.keys.get(this.currentId)!;
  }

  get(id: string): Buffer | undefined {
    return this.keys.get(id);
  }

  get ids(): string[] {
    return [...this.keys.keys()];
  }
}

function parseKey(text: string, where: string): Buffer {
  const key = Buffer.from(text, 'base64');
  const plain = text.replace(/=+$/, '');
  // Buffer.from skips what is not base64; a mistyped key must not become another key.
  if (key.toString('base64').replace(/=+$/, '') !== plain) throw new ConfigError(`${where}: not base64`);
  if (key.length !== KEY_BYTES) {
    throw new ConfigError(`${where}: expected ${KEY_BYTES} bytes in base64, got ${key.length} bytes`);
  }
  return key;
}

const derivedId = (key: Buffer) =>
  createHash('sha256').update('trivet key id\0').update(key).digest('hex').slice(0, 16);

/** Never quotes the text it was given: messages name lines. */
export function parseKeyring(text: string, path: string): Keyring {
  const keys: { id: string; key: Buffer }[] = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const where = `${VARIABLE}: ${path} line ${index + 1}`;
    const colon = line.indexOf(':');
    const key = parseKey(line.slice(colon + 1), where);
    const id = colon < 0 ? derivedId(key) : line.slice(0, colon);
    if (!/^[A-Za-z0-9._-]{1,63}$/.test(id)) {
      throw new ConfigError(`${where}: expected an id of 1 to 63 letters, digits, dots, dashes or underscores`);
    }
    if (keys.some(other => other.id === id)) throw new ConfigError(`${where}: the id ${id} is there twice`);
    keys.push({ id, key });
  }
  return new Keyring(keys);
}

/**
 * Group members may read it only in the form in which Kubernetes hands a secret to a process that is not root: root
 * owns it, and the group is the only way in.
 */
function checkMode({ mode, uid }: Stats, path: string): void {
  const groupOnly = uid === 0 && process.getuid?.() !== 0;
  if ((mode & (groupOnly ? 0o037 : 0o077)) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    throw new ConfigError(`${VARIABLE}: ${path} can be read by others (mode ${octal}); remedy: chmod 600 ${path}`);
  }
}

/** Reads the file once, at start. Throws ConfigError. */
export function loadKeyring(path: string): Keyring {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new ConfigError(`${VARIABLE}: ${path} is not a file`);
    checkMode(stats, path);
    return parseKeyring(readFileSync(descriptor, 'utf8'), path);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${VARIABLE}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
