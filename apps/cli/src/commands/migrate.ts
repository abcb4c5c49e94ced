import { objectBackendKinds } from '#backends/registry';
import { type Config, loadConfig, readSecretFile } from '#platform/config/config';
import { hostsIn } from '#platform/config/database-address';
import { loadKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { declareRestored, isUndeclared, restoredAddress } from '#platform/schema/declare-restored';
import { migrate } from '#platform/schema/migrate';
import { ADMIN_USER, APPLIANCE_TENANT, CSP_USER } from '#tenancy/credentials/login-name';
import { type SetUp, setUp } from '#tenancy/setup/setup';
import { ensureLauncherToken } from '#tenancy/tokens/launcher-token';
import { ADMIN_LOGIN, readCredentials, setAdminCredentials, setCspCredentials } from '../credentials.js';
import { inLine } from '../doctor/check.js';
import { Home } from '../home.js';
import { currentSettings } from '../operator.js';
import { lookAhead, prepareUpgrade } from '../upgrade/prepare.js';

type OwnerConfig = Config & { TRIVET_DATABASE_OWNER_URL: string };

/** Says what `migrate` would do here, and whether it would; changes nothing. */
export async function checkMigration(): Promise<void> {
  const { findings } = await lookAhead(currentSettings());
  for (const finding of findings) process.stdout.write(`${inLine(finding)}\n`);
  process.exitCode = findings.some(({ level }) => level === 'fail') ? 1 : 0;
}

/**
 * Runs with the owner role, before gateway and worker of a new release start.
 * @param restored the database was put back from a dump or a copy, and is the one that counts
 */
export async function migrateDatabase({ restored }: { restored?: boolean | undefined }): Promise<void> {
  const settings = currentSettings();
  // Under systemd the units alone have the key; what is declared needs none.
  const withKey = !restored || settings.TRIVET_KEK_FILE !== undefined;
  const config = loadConfig(
    ['TRIVET_DATABASE_OWNER_URL', ...(withKey ? (['TRIVET_KEK_FILE'] as const) : [])],
    settings,
  );
  if (restored) config.TRIVET_DATABASE_OWNER_URL = await restoredAddress(config.TRIVET_DATABASE_OWNER_URL);
  const complain = (text: string): void => void process.stderr.write(`${text}\n`);
  if (!restored) await prepareUpgrade(settings, complain);
  const { applied } = await migrate(config.TRIVET_DATABASE_OWNER_URL, {
    say: complain,
  });
  if (restored) {
    await declareRestored(config.TRIVET_DATABASE_OWNER_URL);
    process.stdout.write(`the database at ${hostsIn(config.TRIVET_DATABASE_OWNER_URL)} is the one that counts now\n`);
  } else if (await isUndeclared(config.TRIVET_DATABASE_OWNER_URL))
    process.stderr.write(
      'this database was put back into another server: `trivet migrate --restored` declares that it counts\n',
    );
  if (!config.TRIVET_KEK_FILE) {
    process.stdout.write(
      'backends and users are those of the dump: TRIVET_KEK_FILE is not set, so no others were looked for\n',
    );
    return;
  }
  const kinds = objectBackendKinds();
  const holdsBuckets = (kind: string) => kinds.some(known => known.kind === kind);
  const done = await setUp(config, new SecretBox(loadKeyring(config.TRIVET_KEK_FILE)), holdsBuckets);
  // A container has no home; its people have the files.
  const home = Home.find();
  if (config.TRIVET_CSP_PASSWORD_FILE) tellCspPassword(home, config.TRIVET_CSP_PASSWORD_FILE, done);
  if (config.TRIVET_ADMIN_PASSWORD_FILE) await tellAdmin(home, config, config.TRIVET_ADMIN_PASSWORD_FILE, done);
  process.stdout.write(applied.length > 0 ? `migrated: ${applied.join(', ')}\n` : 'the schema is up to date\n');
}

function tellCspPassword(home: Home | undefined, file: string, { cspPasswordHolds }: SetUp): void {
  if (cspPasswordHolds) {
    if (home) setCspCredentials(home, readSecretFile('TRIVET_CSP_PASSWORD_FILE', file));
  } else if (!home || !readCredentials(home).csp)
    process.stdout.write(
      `user ${CSP_USER} exists with another password than ${file} has; \`trivet user passwd ${CSP_USER}\` gives it a new one\n`,
    );
}

async function tellAdmin(
  home: Home | undefined,
  config: OwnerConfig,
  file: string,
  { adminPasswordHolds }: SetUp,
): Promise<void> {
  if (adminPasswordHolds) {
    if (home) setAdminCredentials(home, { password: readSecretFile('TRIVET_ADMIN_PASSWORD_FILE', file) });
  } else if (!home || !readCredentials(home).admin)
    process.stdout.write(
      `${file} does not have the password of ${ADMIN_LOGIN}; \`trivet user passwd ${ADMIN_USER} --tenant ${APPLIANCE_TENANT}\` gives it a new one\n`,
    );
  if (!home) return;
  const token = await ensureLauncherToken(config.TRIVET_DATABASE_OWNER_URL, readCredentials(home).admin?.token);
  if (token !== undefined) setAdminCredentials(home, { token });
}
