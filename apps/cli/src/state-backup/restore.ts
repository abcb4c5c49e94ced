import { existsSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EXIT_CONFIG, loadConfig } from '#platform/config/config';
import { hostsIn } from '#platform/config/database-address';
import type { Keyring } from '#platform/crypto/kek';
import { decodeSealed, SecretBox } from '#platform/crypto/secrets';
import type { AboutDump } from '#platform/dump/dump';
import { aboutDump, load } from '#platform/dump/load';
import { environment, settings } from '../environment.js';
import { Home, LauncherError, writeWhole } from '../home.js';
import { isDatabaseAddress } from '../operator.js';
import { postgresPart } from '../parts/postgres.js';
import { place } from '../parts/postgres-binaries.js';
import { Appliance } from '../supervisor/appliance.js';
import { takeHome } from '../supervisor/home-lock.js';
import { VERSION } from '../version.js';
import { CREDENTIALS, CREDENTIALS_PLACE, keyringOf, requireKeys } from './keys.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * Into the database that the environment names, or into that of a home that is down. Everything that can refuse does so
 * before something is changed.
 */
export async function restore({ file, replace = false }: { file: string; replace?: boolean | undefined }) {
  const path = resolve(file);
  const about = await aboutDump(path);
  const given = settings();
  if (Object.keys(given).some(isDatabaseAddress)) {
    if (replace)
      throw new LauncherError('--replace is for the database of a home; name an empty one of your own', EXIT_CONFIG);
    const { TRIVET_DATABASE_OWNER_URL: url } = loadConfig(['TRIVET_DATABASE_OWNER_URL'], given);
    requireKeys(about, keyringOf(Home.find()), Home.find());
    const credentials = await fill(url, path);
    tellSettings(about, given);
    if (credentials) say('what clients of its home logged in with is left out: users have the passwords that they had');
    say('start gateway and worker');
    return;
  }
  await restoreHome(path, about, replace);
}

async function fill(url: string, path: string): Promise<Buffer | undefined> {
  let credentials: Buffer | undefined;
  const { rows } = await load(url, path, {
    declare: true,
    say,
    take: ({ name, bytes }) => {
      if (name === CREDENTIALS) credentials = bytes;
    },
  });
  say(`${rows} rows are in the database at ${hostsIn(url)}, which is the one that counts now`);
  return credentials;
}

async function restoreHome(path: string, about: AboutDump, replace: boolean): Promise<void> {
  const home = Home.open();
  const keyring = keyringOf(home);
  requireKeys(about, keyring, home);
  const lock = await takeHome(home);
  if (lock === undefined) throw new LauncherError(`${home.path} runs; ./trivet down, then restore`);
  try {
    const giveBack = await makeRoom(home, replace);
    const appliance = new Appliance(home, {
      given: keepsKey(),
      partsOnly: true,
      install: false,
      only: [postgresPart],
      version: VERSION,
      say,
    });
    try {
      await appliance.start();
      const credentials = await fill(appliance.env.TRIVET_DATABASE_OWNER_URL ?? '', path);
      if (credentials && keyring) putCredentials(home, credentials, keyring);
    } catch (error) {
      await appliance.stop();
      giveBack();
      throw error;
    }
    await appliance.stop();
  } finally {
    lock.close();
  }
  say(`settings of the appliance that it was taken of: tar --zstd -xOf ${path} about.json`);
  say('./trivet up starts it');
}

const keepsKey = (): Record<string, string> =>
  environment.TRIVET_KEK_FILE ? { TRIVET_KEK_FILE: environment.TRIVET_KEK_FILE } : {};

/** What it replaces is kept: whoever restores the wrong file can go back. Returns what puts it back when the restore fails. */
async function makeRoom(home: Home, replace: boolean): Promise<() => void> {
  const { data } = await place(home);
  const clear = () => rmSync(data, { recursive: true, force: true });
  if (!existsSync(join(data, 'PG_VERSION'))) return clear;
  const aside = `${data}.before-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  if (!replace)
    throw new LauncherError(
      `${home.path} has a database already: --replace moves it to ${aside} before the restore`,
      EXIT_CONFIG,
    );
  renameSync(data, aside);
  say(`the database that was there is kept in ${aside}: remove it when nobody needs it any more`);
  return () => {
    clear();
    renameSync(aside, data);
    say('nothing was restored: the database that was there is back');
  };
}

function putCredentials(home: Home, sealed: Buffer, keyring: Keyring): void {
  const text = new SecretBox(keyring).openText(decodeSealed(sealed), CREDENTIALS_PLACE);
  writeWhole(home.credentialsFile, text);
}

/** Of the appliance that it was taken of: what is set otherwise here may be meant, or forgotten. */
function tellSettings({ settings: then }: AboutDump, now: Readonly<Record<string, string>>): void {
  const other = Object.entries(then).filter(([name, value]) => now[name] !== value);
  if (other.length === 0) return;
  say('settings of the appliance that the backup was taken of, which are others here:');
  for (const [name, value] of other) say(`  ${name}=${value}  (here: ${now[name] ?? 'not set'})`);
}
