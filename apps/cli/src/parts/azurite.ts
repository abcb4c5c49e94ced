import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnvironment, environment, surroundings } from '../environment.js';
import { type Home, writeWhole } from '../home.js';
import { findFreePort } from '../ports.js';
import { listensAt } from '../processes/listeners.js';
import { findProgram, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, type Part, type PartContext } from './part.js';

/** Newer ones could not be installed. Some 370 packages: so it is none of ours, but kept beside, for runs that ask for it. */
const VERSION = '3.35.0';
const SORT = 'azurite';
const INSTALL_MS = 10 * 60_000;
const UNTESTED = 'buckets on Azure Blob are not tested';
const ACCOUNT = 'trivettests';

const isInstalled = (): boolean => existsSync(keptFolder(SORT, VERSION));
/** Where it listens, and with which key; there is none while it is not started. */
export const azuriteOf = (home: Home): string | undefined =>
  existsSync(placeFile(home)) ? readFileSync(placeFile(home), 'utf8') : undefined;

const placeFile = (home: Home): string => home.file('secrets', 'azurite.json');
const isAskedFor = (): boolean => (environment.TRIVET_REQUIRE ?? '').split(',').includes('azurite');

/** Microsoft's emulator of the Blob service. Every start is a new, empty account with a key of its own. */
export const azuritePart: Part = {
  ...forTests('azurite', () => {
    if (isInstalled()) return undefined;
    const lack = { reason: `Azurite is not installed; ${UNTESTED}`, packages: [] };
    if (!isAskedFor()) return { ...lack, remedy: 'run with azurite in TRIVET_REQUIRE, which installs it once' };
    return findProgram('npm') === undefined ? { ...lack, remedy: 'install npm' } : undefined;
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home, signal } = context;
    if (!context.install && !isInstalled())
      throw new Error(`Azurite is not installed, and nothing shall be downloaded; ${UNTESTED}`);
    const folder = await keep({ sort: SORT, name: VERSION, make: begun => install(begun, context), signal });
    const port = await findFreePort();
    const accountKey = randomBytes(64).toString('base64');
    await context.run({
      name: 'azurite',
      command: process.execPath,
      args: [
        join(folder, 'node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js'),
        ...['--blobHost', '127.0.0.1', '--blobPort', String(port)],
        ...['--inMemoryPersistence', '--silent', '--disableTelemetry', '--skipApiVersionCheck'],
      ],
      env: { ...bareEnvironment(), ...context.mark, AZURITE_ACCOUNTS: `${ACCOUNT}:${accountKey}` },
      cwd: home.path,
      logFile: home.log('azurite'),
      stopSignal: 'SIGTERM',
      stopGraceMs: 5_000,
      readyMs: 60_000,
      ports: [port],
      ready: async pid => listensAt(pid, port),
    });
    const endpoint = `http://127.0.0.1:${port}/${ACCOUNT}`;
    writeWhole(placeFile(home), JSON.stringify({ endpoint, account: ACCOUNT, accountKey }));
    return {};
  },
};

async function install(begun: string, { say, signal, mark }: PartContext): Promise<void> {
  say('npm installs it, once; takes a minute');
  mkdirSync(begun, { mode: 0o755 });
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];
  await runCommand(findProgram('npm') as string, ['install', '--prefix', begun, ...quietly, `azurite@${VERSION}`], {
    env: { ...surroundings(), ...mark },
    signal,
    timeoutMs: INSTALL_MS,
  });
}
