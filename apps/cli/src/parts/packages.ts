import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isRoot } from '../home.js';
import { CommandError, runCommand } from './command.js';

/** What installing needs of the machine; replaced in tests. */
export interface PackageHost {
  isRoot(): boolean;
  /** /etc/os-release, or '' when there is none. */
  osRelease(): string;
  run(
    command: string,
    args: readonly string[],
    options: { timeoutMs: number; env: Record<string, string>; onLine?(line: string): void },
  ): Promise<string>;
  policyFile: string;
}

const machine: PackageHost = {
  isRoot,
  osRelease: () => (existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : ''),
  run: runCommand,
  policyFile: '/usr/sbin/policy-rc.d',
};

const POLICY = '#!/bin/sh\n# Placed by Trivet while it installs packages: no service of the system starts.\nexit 101\n';
const APT_MS = 15 * 60_000;
/** Debian starts them at the next boot; tgtd would then hold port 3260 on all addresses, and nobody uses either. */
const SERVICES: ReadonlySet<string> = new Set(['redis-server', 'tgt']);
const ENV = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };

/** Why packages cannot be installed here; undefined when they can. */
export function cannotInstall(host: PackageHost = machine): string | undefined {
  const release = host.osRelease();
  if (!/^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release)) return 'packages are installed on Debian and Ubuntu only';
  if (!host.isRoot()) return 'only root can install packages';
  return undefined;
}

/**
 * One apt call for all. Resolves to undefined, or to why they cannot be installed, in apt's own words. No system service
 * is started: a policy-rc.d that forbids it is in place meanwhile, unless the machine has one. Nor at the next boot.
 */
export async function installPackages(
  packages: readonly string[],
  say: (line: string) => void,
  host: PackageHost = machine,
): Promise<string | undefined> {
  const onLine = progress(say);
  const apt = (args: readonly string[]) => host.run('apt-get', args, { timeoutMs: APT_MS, env: ENV, onLine });
  const lock = ['-o', 'DPkg::Lock::Timeout=300'];
  let stale: string | undefined;
  const update = async (): Promise<void> => {
    say('apt-get update');
    // Without Error-Mode a mirror that cannot be reached is a warning, and the exit code 0.
    stale = await apt([...lock, '-o', 'APT::Update::Error-Mode=any', 'update', '-q']).then(() => undefined, firstError);
  };
  const policy = placePolicy(host.policyFile);
  try {
    // It answers 0 when it knows one of them, and every Debian knows mount.
    const known = await host.run('apt-cache', ['show', ...packages], { timeoutMs: 60_000, env: ENV }).then(
      shown => packages.every(name => shown.split('\n').includes(`Package: ${name}`)),
      () => false,
    );
    if (!known) await update();
    say(`apt-get install ${packages.join(' ')}`);
    const install = [...lock, 'install', '-q', '-y', '--no-install-recommends', ...packages];
    try {
      await apt(install);
    } catch {
      // A mirror that moved on since the last update, or a connection that broke.
      await update();
      await apt(install);
    }
    for (const name of packages.filter(one => SERVICES.has(one)))
      await host
        .run('update-rc.d', [name, 'disable'], { timeoutMs: 60_000, env: ENV })
        .catch(error => say(`${name} of the system starts at the next boot: ${lastLine(error)}`));
    return undefined;
  } catch (error) {
    return stale === undefined ? lastLine(error) : `${lastLine(error)}; apt-get update: ${stale}`;
  } finally {
    if (policy) rmSync(host.policyFile, { force: true });
  }
}

const PROGRESS_MS = 2_000;

/** Downloads and installations take minutes: now and then the package that is just being dealt with, and how many were. */
export function progress(say: (line: string) => void, now = () => performance.now()): (line: string) => void {
  let told = now();
  let fetched = 0;
  let done = 0;
  return line => {
    const [, what = '', name = ''] =
      /^(Get:\d+|Unpacking|Setting up) (?:\S+ \S+ \S+ )?([a-z0-9][\w.+-]+)/.exec(line) ?? [];
    if (name === '') return;
    if (what.startsWith('Get')) fetched++;
    else if (what === 'Setting up') done++;
    if (now() - told < PROGRESS_MS) return;
    told = now();
    const verb = what.startsWith('Get') ? 'fetching' : what === 'Unpacking' ? 'unpacking' : 'setting up';
    say(`  apt: ${verb} ${name} (${fetched} fetched, ${done} set up)`);
  };
}

/** True when it is ours to remove; one that a killed run of ours left is ours too. */
function placePolicy(file: string): boolean {
  if (existsSync(file) && readFileSync(file, 'utf8') !== POLICY) return false;
  writeFileSync(file, POLICY, { mode: 0o755 });
  return true;
}

/** The first is the cause; the last of an update says only that something failed. */
function firstError(error: unknown): string {
  const text = error instanceof CommandError ? error.stderr : '';
  return text.split('\n').find(line => /^[EW]: /.test(line)) ?? lastLine(error);
}

function lastLine(error: unknown): string {
  const text = error instanceof CommandError ? error.stderr || error.stdout : '';
  return text.trim().split('\n').at(-1) || (error as Error).message;
}
