import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { ConfigError, loadConfig } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import type { Actor } from '#tenancy/audit-log/audit-log';
import { withDatabase } from './database.js';
import { settings } from './environment.js';
import { Home } from './home.js';
import { readEnvironmentFile } from './supervisor/apps.js';

/** What commands that look into a running appliance work with. */
export interface Operator {
  database: Database;
  secrets: SecretBox;
}

export const isDatabaseAddress = (name: string): boolean => /^TRIVET_DATABASE_(\w+_)?URL(_FILE)?$/.test(name);

/**
 * Settings come from the environment (a container, a systemd unit) and from the home that `trivet up` runs, the
 * environment first. Database addresses are never mixed: an environment that names one names them all.
 */
export function operatorSettings(
  given: Readonly<Record<string, string>>,
  stored: Readonly<Record<string, string>>,
): Record<string, string> {
  const named = Object.keys(given).some(isDatabaseAddress);
  const kept = Object.entries(stored).filter(
    ([name]) => !(named && isDatabaseAddress(name)) && given[`${name}_FILE`] === undefined,
  );
  const env = { ...Object.fromEntries(kept), ...given };
  if (!Object.keys(env).some(isDatabaseAddress))
    throw new ConfigError('TRIVET_DATABASE_URL: required, and no appliance is running here: start it with `trivet up`');
  return env;
}

/** operatorSettings of this process and its home. */
export function currentSettings(): Record<string, string> {
  const home = Home.find();
  const text = home && existsSync(home.environmentFile) ? readFileSync(home.environmentFile, 'utf8') : '';
  return operatorSettings(settings(), readEnvironmentFile(text));
}

export async function asOperator<T>(work: (operator: Operator) => Promise<T>): Promise<T> {
  const env = currentSettings();
  const config = loadConfig(['TRIVET_DATABASE_URL', 'TRIVET_DATABASE_ENGINE_URL', 'TRIVET_KEK_FILE'], env);
  const { TRIVET_DATABASE_URL: appUrl, TRIVET_DATABASE_ENGINE_URL: engineUrl, TRIVET_KEK_FILE: kek } = config;
  return withDatabase({ appUrl, engineUrl, app: 'cli', poolSize: 2 }, database =>
    work({ database, secrets: new SecretBox(loadKeyring(kek)) }),
  );
}

/** Whoever runs a command on the appliance's host, for the audit log. */
export function commandActor(): Actor {
  let name = `uid ${process.getuid?.()}`;
  try {
    name = userInfo().username;
  } catch {
    // A container's user often has no name.
  }
  return { kind: 'command', name, address: '' };
}
