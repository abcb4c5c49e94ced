import { existsSync } from 'node:fs';
import { EXIT } from '../api/api-error.js';
import { askTerminal } from '../api/confirm.js';
import { Home, LauncherError } from '../home.js';
import { signal, waitForExit } from '../processes/process.js';
import { livingState, readState, writeState } from '../state.js';
import { eraseHome } from '../supervisor/appliance.js';
import { takeHome } from '../supervisor/home-lock.js';
import { clearLeftovers } from '../supervisor/leftovers.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);
/** Gateway and worker 15 s each, three Ceph daemons, Redis and PostgreSQL within their limits. */
const STOP_MS = 150_000;

export async function down({ purge = false, yes = false }: { purge?: boolean; yes?: boolean }): Promise<void> {
  const home = Home.find();
  if (home === undefined) {
    say(`nothing at ${Home.locate()}`);
    return;
  }
  if (purge && !yes) await confirm(home);
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
    const remains = await clearLeftovers(home, say);
    const state = readState(home);
    if (state !== undefined) writeState(home, { ...state, state: 'stopped', processes: [] });
    if (remains.length > 0)
      throw new LauncherError(
        `not all of ${home.path} is down${purge ? ', and nothing is deleted' : ''}: ${remains.join('\n  ')}\n  end what uses it, then repeat`,
      );
    if (purge) eraseHome(home);
  } finally {
    lock.close();
  }
  say(purge ? `${home.path} is deleted` : 'down');
}

/** A home that has never held anything goes without a question. */
async function confirm(home: Home): Promise<void> {
  const goes = [
    ...(existsSync(home.kekFile) ? [`the key file ${home.kekFile}, without which no backup of it can be read`] : []),
    ...HOLDS.filter(([name]) => existsSync(home.file(name))).map(([, what]) => what),
    ...(readState(home)?.dataOutside === undefined ? [] : ['the database']),
  ];
  if (goes.length === 0) return;
  const question = `${home.path} goes with ${[...new Set(goes)].join(', ')}`;
  if (!process.stdin.isTTY)
    throw new LauncherError(`${question}; to delete it: ./trivet down --purge --yes`, EXIT.usage);
  if ((await askTerminal(`${question}. Delete it? Type yes: `)) !== 'yes')
    throw new LauncherError('nothing is deleted, and nothing was stopped');
}

const HOLDS: readonly [name: string, what: string][] = [
  ['postgres', 'the database'],
  ['ceph', 'the objects in its Ceph'],
  ['pool.xfs', 'the volumes in its pool'],
  ['volumes', 'the volumes in its pool'],
];
