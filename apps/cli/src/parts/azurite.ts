import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnvironment, environment, surroundings } from '../environment.js';
import { type Home, isRoot, writeWhole } from '../home.js';
import { findFreePort } from '../ports.js';
import { listensAt } from '../processes/listeners.js';
import { findProgram, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import { forTests, type Lack, type Part, type PartContext } from './part.js';

/** Newer ones could not be installed. Some 370 packages: so it is none of ours, but kept beside, for runs that ask for it. */
const VERSION = '3.35.0';
const SORT = 'azurite';
const INSTALL_MS = 10 * 60_000;
const UNTESTED = 'there are no buckets on Azure Blob';
const ACCOUNT = 'trivettests';
const TRYING = 'trivettrying';

const isInstalled = (): boolean => existsSync(keptFolder(SORT, VERSION));
/** Where it listens, and with which key; there is none while it is not started. */
export const azuriteOf = (home: Home): string | undefined =>
  existsSync(placeFile(home)) ? readFileSync(placeFile(home), 'utf8') : undefined;

const placeFile = (home: Home): string => home.file('secrets', 'azurite.json');
const isAskedFor = (): boolean => (environment.TRIVET_REQUIRE ?? '').split(',').includes('azurite');

/** Microsoft's emulator of the Blob service, for tests. Every start is a new, empty account with a key of its own. */
export const azuriteTestPart: Part = {
  ...forTests('azurite', () => {
    if (isInstalled()) return undefined;
    const lack = { reason: `Azurite is not installed; ${UNTESTED}`, packages: [] };
    if (!isAskedFor()) return { ...lack, remedy: 'run with azurite in TRIVET_REQUIRE, which installs it once' };
    return findProgram('npm') === undefined ? { ...lack, remedy: 'install npm' } : undefined;
  }),

  async start(context: PartContext): Promise<Record<string, string>> {
    const port = await findFreePort();
    const accountKey = newKey();
    await serve(context, { port, account: ACCOUNT, accountKey, storage: ['--inMemoryPersistence'] });
    const endpoint = endpointOf(port, ACCOUNT);
    writeWhole(placeFile(context.home), JSON.stringify({ endpoint, account: ACCOUNT, accountKey }));
    return {};
  },
};

/** Buckets for a home of `up` that cannot have Ceph: what is in them stays, and is served to this host alone. */
export const azuriteStandIn: Part = {
  name: 'azurite',
  insteadOf: { part: 'rgw', folder: 'ceph' },
  addressVariable: 'TRIVET_AZURE_ENDPOINT',
  absent: {},

  async check(): Promise<Lack | undefined> {
    if (findProgram('npm') !== undefined) return undefined;
    return {
      reason: 'npm is not installed, which brings Azurite; there are no buckets',
      packages: [],
      remedy: 'install npm',
    };
  },

  async start(context: PartContext): Promise<Record<string, string>> {
    const { home, ports, say } = context;
    const keyFile = home.file('secrets', 'azurite-key');
    if (!existsSync(keyFile)) writeWhole(keyFile, `${newKey()}\n`);
    const port = await ports.take('azurite');
    const accountKey = readFileSync(keyFile, 'utf8').trim();
    await serve(context, { port, account: TRYING, accountKey, storage: ['--location', home.file('azurite')] });
    say(
      'buckets are containers of Azurite, an emulator of Azure Blob, for trying out alone; with the packages of Ceph they are its',
    );
    return {
      TRIVET_AZURE_ENDPOINT: endpointOf(port, TRYING),
      TRIVET_AZURE_ACCOUNT: TRYING,
      TRIVET_AZURE_KEY_FILE: keyFile,
      TRIVET_COSI_BACKEND: 'azure',
    };
  },
};

const newKey = (): string => randomBytes(64).toString('base64');
const endpointOf = (port: number, account: string): string => `http://127.0.0.1:${port}/${account}`;

async function serve(
  context: PartContext,
  { port, account, accountKey, storage }: { port: number; account: string; accountKey: string; storage: string[] },
): Promise<void> {
  const { home } = context;
  const folder = await installed(context);
  await context.run({
    name: 'azurite',
    command: process.execPath,
    args: [
      join(folder, 'node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js'),
      ...['--blobHost', '127.0.0.1', '--blobPort', String(port)],
      ...[...storage, '--silent', '--disableTelemetry', '--skipApiVersionCheck'],
    ],
    env: { ...bareEnvironment(), ...context.mark, AZURITE_ACCOUNTS: `${account}:${accountKey}` },
    cwd: home.path,
    logFile: home.log('azurite'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    readyMs: 60_000,
    ports: [port],
    ready: async pid => listensAt(pid, port),
  });
}

/** For all homes of this machine, where this one may write there; else in the home. */
async function installed(context: PartContext): Promise<string> {
  const { home, signal } = context;
  if (!isRoot() && isInstalled()) return keptFolder(SORT, VERSION);
  const cache = isRoot() ? undefined : home.file('packages');
  if (!context.install && !existsSync(keptFolder(SORT, VERSION, cache)))
    throw new Error(`Azurite is not installed, and nothing shall be downloaded; ${UNTESTED}`);
  return keep({ sort: SORT, name: VERSION, make: begun => install(begun, context), signal, cache });
}

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
