import { existsSync, statfsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError, loadConfig } from '#platform/config/config';
import { hostsIn } from '#platform/config/database-address';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { unreachable } from '#platform/schema/migrate';
import { planUpgrade, type UpgradePlan, whoHolds } from '#platform/schema/upgrade-plan';
import { type Finding, inLine } from '../doctor/check.js';
import { Home, LauncherError } from '../home.js';
import { MigratedMeanwhile, writeBackup } from '../state-backup/back-up.js';
import { preflight } from './preflight.js';
import { backUpBefore } from './upgrade-backups.js';

const FOLDER = 'upgrade-backups';

/** Changes nothing. */
export async function lookAhead(
  settings: Readonly<Record<string, string>>,
): Promise<{ plan: UpgradePlan; findings: Finding[] }> {
  const { TRIVET_DATABASE_OWNER_URL: ownerUrl } = loadConfig(['TRIVET_DATABASE_OWNER_URL'], settings);
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect().catch(error => {
    throw unreachable(ownerUrl, error);
  });
  try {
    const plan = await planUpgrade(client);
    const findings = preflight(plan, {
      backupFolder: folderOf(settings),
      needsRecent: settings.TRIVET_UPGRADE_BACKUPS !== 'none',
      freeBytes: freeFor(ownerUrl),
      holders: await whoHolds(client, plan.work),
    });
    return { plan, findings };
  } finally {
    await client.end().catch(() => {});
  }
}

/** Refuses before anything is changed, and writes the backup that goes before the change. */
export async function prepareUpgrade(
  settings: Readonly<Record<string, string>>,
  say: (text: string) => void,
): Promise<void> {
  const { plan, findings } = await lookAhead(settings);
  const bad = findings.filter(({ level }) => level === 'fail');
  if (bad.length > 0)
    throw new ConfigError(
      ['this release does not migrate that database now; nothing was changed', ...bad.map(inLine)].join('\n'),
    );
  for (const finding of findings) if (finding.level === 'warn') say(inLine(finding));
  const folder = folderOf(settings);
  const last = plan.pending.at(-1);
  if (folder === undefined || last === undefined || !plan.holds) return;
  try {
    const upgrade = { applied: plan.applied, last };
    say(
      `backup before the upgrade: ${await backUpBefore(folder, upgrade, path => writeBackup(path, settings, upgrade))}`,
    );
  } catch (error) {
    // It may have nothing left to do.
    if (error instanceof MigratedMeanwhile) return prepareUpgrade(settings, say);
    throw new LauncherError(
      `the backup before the upgrade failed, and nothing was changed: ${(error as Error).message}`,
      error instanceof LauncherError ? error.exitCode : 1,
    );
  }
}

function folderOf({
  TRIVET_UPGRADE_BACKUPS: given,
  TRIVET_HOME,
}: Readonly<Record<string, string>>): string | undefined {
  if (given === 'none' || given === 'recent') return undefined;
  if (given !== undefined) return resolve(given);
  const home = TRIVET_HOME ?? Home.find()?.path;
  return home === undefined ? undefined : join(home, FOLDER);
}

/** The launcher's own PostgreSQL alone is known to be on this host. */
function freeFor(ownerUrl: string): number | undefined {
  const home = Home.find();
  if (home === undefined || !hostsIn(ownerUrl).startsWith('127.0.0.1')) return undefined;
  const folder = [join('/var/lib/trivet', home.id, 'postgres'), home.file('postgres')].find(existsSync);
  if (folder === undefined) return undefined;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
