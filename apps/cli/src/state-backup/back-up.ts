import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadConfig } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { encodeSealed, SecretBox } from '#platform/crypto/secrets';
import { dump } from '#platform/dump/dump';
import { EXIT } from '../api/api-error.js';
import { Home, LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { currentSettings, isDatabaseAddress } from '../operator.js';
import { isSecret } from '../supervisor/apps.js';
import { VERSION } from '../version.js';
import { CREDENTIALS, CREDENTIALS_PLACE, requireKeys } from './keys.js';

export async function backUp({ file }: { file: string }): Promise<void> {
  const path = resolve(file);
  const current = currentSettings();
  const { TRIVET_KEK_FILE: keyFile } = loadConfig(['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'], current);
  say(await writeBackup(path, current));
  say(`of no use without the key file, which is not in it: keep a copy of ${resolve(keyFile)} in another place`);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Another host has migrated the database since it was looked at. */
export class MigratedMeanwhile extends Error {}

/** The upgrade before which a backup is taken. */
export interface Upgrade {
  applied: readonly string[];
  /** Its last migration. */
  last: string;
}

/**
 * @returns what it is, in a line for people
 * @throws MigratedMeanwhile when it would not be from before this upgrade
 */
export async function writeBackup(
  path: string,
  current: Readonly<Record<string, string>>,
  upgrade?: Upgrade,
): Promise<string> {
  if (existsSync(path)) throw new LauncherError(`${path} is there already; name another file`, EXIT.usage);
  const config = loadConfig(['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'], current);
  const keyring = loadKeyring(config.TRIVET_KEK_FILE);
  const home = Home.find();
  const begin = performance.now();
  const { rows, unrecorded } = await dump(config.TRIVET_DATABASE_OWNER_URL, path, {
    release: VERSION,
    settings: Object.fromEntries(
      Object.entries(current).filter(([name]) => !isSecret(name) && !isDatabaseAddress(name)),
    ),
    more: credentialsOf(home, new SecretBox(keyring)),
    ...(upgrade && { before: upgrade.last }),
    mayWrite: about => {
      if (upgrade && about.migrations.join() !== upgrade.applied.join()) throw new MigratedMeanwhile();
      requireKeys(about, keyring, home);
    },
  });
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  const unknown = unrecorded === undefined ? '' : `; the database does not know when it was taken: ${unrecorded}`;
  return `${path}: ${rows} rows, ${humanBytes(statSync(path).size)}, in ${seconds} s${unknown}`;
}

/** Sealed as what is in the database: the file alone opens nothing. */
function credentialsOf(home: Home | undefined, box: SecretBox): Record<string, Buffer> {
  if (!home || !existsSync(home.credentialsFile)) return {};
  return { [CREDENTIALS]: encodeSealed(box.seal(readFileSync(home.credentialsFile), CREDENTIALS_PLACE)) };
}
