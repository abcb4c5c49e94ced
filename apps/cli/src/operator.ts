import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { BackendRegistry, objectBackendKinds } from '#backends/registry';
import { type Config, ConfigError, loadConfig } from '#platform/config';
import { Database } from '#platform/database';
import { loadKeyring } from '#platform/kek';
import { SecretBox } from '#platform/secrets';
import { BackendDirectory } from '#storage/backend-directory';
import { readApplianceId } from '#tenancy/appliance';
import type { Actor } from '#tenancy/audit-log';
import { settings } from './environment.js';
import { Home } from './home.js';
import { readEnvironmentFile } from './supervisor/apps.js';

/** What commands that look into a running appliance work with. */
export interface Operator {
  config: Config;
  database: Database;
  backends: BackendDirectory;
  secrets: SecretBox;
  kinds: ReturnType<typeof objectBackendKinds>;
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
  const database = await Database.connect({
    appUrl: config.TRIVET_DATABASE_URL,
    engineUrl: config.TRIVET_DATABASE_ENGINE_URL,
    poolSize: 2,
    applicationName: 'trivet:cli',
  });
  try {
    const kinds = objectBackendKinds({ fakeFile: config.TRIVET_FAKE_BACKEND_FILE });
    const registry = new BackendRegistry(kinds, await readApplianceId(database));
    const secrets = new SecretBox(loadKeyring(config.TRIVET_KEK_FILE));
    const backends = new BackendDirectory(database, registry, secrets);
    try {
      return await work({ config, database, backends, secrets, kinds });
    } finally {
      backends.close();
    }
  } finally {
    await database.close();
  }
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
