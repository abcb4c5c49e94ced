import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isRoot } from './home.js';
import { CommandError, runCommand } from './parts/command.js';

/** What installing needs of the machine; replaced in tests. */
export interface PackageHost {
  isRoot(): boolean;
  /** /etc/os-release, or '' when there is none. */
  osRelease(): string;
  run(
    command: string,
    args: readonly string[],
    options: { timeoutMs: number; env: Record<string, string> },
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
const ENV = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' };

/** Why packages cannot be installed here; undefined when they can. */
export function cannotInstall(host: PackageHost = machine): string | undefined {
  const release = host.osRelease();
  if (!/^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(release)) return 'packages are installed on Debian and Ubuntu only';
  if (!host.isRoot()) return 'only root can install packages';
  return undefined;
}

/**
 * One apt call for all. Resolves to undefined, or to apt's last line when they cannot be installed. No system service
 * is started: a policy-rc.d that forbids it is in place meanwhile, unless the machine has one.
 */
export async function installPackages(
  packages: readonly string[],
  say: (line: string) => void,
  host: PackageHost = machine,
): Promise<string | undefined> {
  const apt = (args: readonly string[]): Promise<string> => host.run('apt-get', args, { timeoutMs: APT_MS, env: ENV });
  const policy = placePolicy(host.policyFile);
  try {
    const known = await host.run('apt-cache', ['show', ...packages], { timeoutMs: 60_000, env: ENV }).then(
      () => true,
      () => false,
    );
    const lock = ['-o', 'DPkg::Lock::Timeout=300'];
    if (!known) {
      say('apt-get update');
      await apt([...lock, 'update', '-q']).catch(() => {});
    }
    say(`apt-get install ${packages.join(' ')}`);
    const install = [...lock, 'install', '-q', '-y', '--no-install-recommends', ...packages];
    try {
      await apt(install);
    } catch {
      // A mirror that moved on since the last update, or a connection that broke.
      await apt([...lock, 'update', '-q']).catch(() => {});
      await apt(install);
    }
    return undefined;
  } catch (error) {
    return lastLine(error);
  } finally {
    if (policy) rmSync(host.policyFile, { force: true });
  }
}

/** True when it is ours to remove; one that a killed run of ours left is ours too. */
function placePolicy(file: string): boolean {
  if (existsSync(file) && readFileSync(file, 'utf8') !== POLICY) return false;
  writeFileSync(file, POLICY, { mode: 0o755 });
  return true;
}

function lastLine(error: unknown): string {
  const text = error instanceof CommandError ? error.stderr || error.stdout : '';
  return text.trim().split('\n').at(-1) || (error as Error).message;
}
