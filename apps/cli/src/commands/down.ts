import { Home, LauncherError } from '../home.js';
import { signal, waitForExit } from '../processes/process.js';
import { livingState, readState, writeState } from '../state.js';
import { eraseHome } from '../supervisor/appliance.js';
import { takeHome } from '../supervisor/home-lock.js';
import { clearLeftovers } from '../supervisor/leftovers.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);
/** Gateway and worker 15 s each, three Ceph daemons, Redis and PostgreSQL within their limits. */
const STOP_MS = 150_000;

export async function down(options: { purge?: boolean }): Promise<void> {
  const home = Home.find();
  if (home === undefined) {
    say(`nothing at ${Home.locate()}`);
    return;
  }
  const living = livingState(home);
  if (living !== undefined) {
    signal(living.supervisor, 'SIGTERM');
    if (!(await waitForExit(living.supervisor, STOP_MS))) {
      say(`supervisor ${living.supervisor.pid} does not stop; killing it`);
      signal(living.supervisor, 'SIGKILL');
      await waitForExit(living.supervisor, 5_000);
    }
  }
  const lock = await takeHome(home);
  if (lock === undefined) throw new LauncherError(`another up of ${home.path} has just begun`);
  try {
    await clearLeftovers(home, say);
    if (options.purge) eraseHome(home);
    else {
      const state = readState(home);
      if (state !== undefined) writeState(home, { ...state, state: 'stopped', processes: [] });
    }
  } finally {
    lock.close();
  }
  say(options.purge ? `${home.path} is deleted` : 'down');
}
