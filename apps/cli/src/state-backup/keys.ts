import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { EXIT_CONFIG } from '#platform/config/config';
import { type Keyring, loadKeyring } from '#platform/crypto/kek';
import type { SecretPlace } from '#platform/crypto/secrets';
import type { AboutDump } from '#platform/dump/dump';
import { settings } from '../environment.js';
import { type Home, LauncherError } from '../home.js';

/** The entry with what clients of a home log in with, which is in no database. */
export const CREDENTIALS = 'credentials.sealed';
export const CREDENTIALS_PLACE: SecretPlace = {
  tenantId: 'appliance',
  table: 'backup',
  rowId: 'credentials',
  column: 'file',
};

/** Where the key file is to be, whether it is there or not. */
const fileOf = (home: Home | undefined): string | undefined => {
  const { TRIVET_KEK_FILE: given } = settings();
  return given ? resolve(given) : home?.kekFile;
};

/** Undefined: none is named, and none is in a home. */
export function keyringOf(home: Home | undefined): Keyring | undefined {
  const file = fileOf(home);
  return file !== undefined && (settings().TRIVET_KEK_FILE || existsSync(file)) ? loadKeyring(file) : undefined;
}

/** What another key has sealed is lost, and would be missed only when a bucket's credentials are asked for. */
export function requireKeys({ keys }: AboutDump, keyring: Keyring | undefined, home: Home | undefined): void {
  const missing = keys.filter(id => keyring?.get(id) === undefined);
  if (missing.length === 0) return;
  const has = keyring ? `TRIVET_KEK_FILE holds ${keyring.ids.join(', ')}` : 'there is no key file';
  const place = fileOf(home) ?? 'a file of mode 0600, and set TRIVET_KEK_FILE to it';
  throw new LauncherError(
    `its secrets are sealed with key ${missing.join(', ')}, and ${has}\n` +
      `  put the key file that belongs to it to ${place}; nothing was changed`,
    EXIT_CONFIG,
  );
}
