import { chmodSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { Home } from '../home.js';
import { livingState, readState } from '../state.js';
import { Appliance, type ApplianceOptions, eraseHome } from '../supervisor/appliance.js';
import { lockHome } from '../supervisor/home-lock.js';
import { clearLeftovers } from '../supervisor/leftovers.js';

const PREFIX = 'trivet-test-';

/** Runs a command, and leaves nothing of it behind. */
export const WARDEN = join(PACKAGE_ROOT, 'dist', 'apps', 'cli', 'src', 'testing', 'warden.js');

export interface ThrowAwayOptions extends Pick<ApplianceOptions, 'install' | 'only' | 'version' | 'say'> {
  /** Fired by a signal to this process; the parts are taken down all the same. */
  interrupt: AbortController;
}

/** Runs `work` beside parts in a home of their own, which is gone afterwards. The parts are not started yet: `work` does. */
export async function withThrowAwayParts<T>(
  { interrupt, ...options }: ThrowAwayOptions,
  work: (home: Home, parts: Appliance) => Promise<T>,
): Promise<T> {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(name, () => interrupt.abort());
  const { say } = options;
  await eraseAbandonedHomes(say);
  const home = makeHome();
  const lock = await lockHome(home);
  const parts = new Appliance(home, { ...options, given: {}, partsOnly: true, throwAway: true });
  try {
    return await work(home, parts);
  } finally {
    await parts.stop();
    await clearLeftovers(home, say);
    eraseHome(home);
    lock?.close();
  }
}

function makeHome(): Home {
  const path = mkdtempSync(join(tmpdir(), PREFIX));
  // PostgreSQL's user passes through.
  chmodSync(path, 0o711);
  return Home.open(path);
}

/** Homes of runs that were killed: their processes still run. */
async function eraseAbandonedHomes(say: (line: string) => void): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const home = Home.find(join(tmpdir(), name));
    if (home === undefined || readState(home) === undefined || livingState(home) !== undefined) continue;
    const lock = await lockHome(home).catch(() => undefined);
    if (lock === undefined) continue;
    await clearLeftovers(home, say);
    try {
      eraseHome(home);
    } catch (error) {
      // Somebody sits in its pool; the next run tries again.
      say((error as Error).message);
    }
    lock.close();
  }
}
