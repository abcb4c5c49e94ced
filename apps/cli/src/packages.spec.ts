import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cannotInstall, installPackages, type PackageHost } from './packages.js';
import { CommandError } from './parts/command.js';

const BOOKWORM = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n';
let folder: string;
let policyFile: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'packages-'));
  policyFile = join(folder, 'policy-rc.d');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Call {
  line: string;
  env: Record<string, string>;
  policy: string | undefined;
}

/** A machine that notes what is run; `answer` says what fails. */
function machine(answer: (line: string, calls: Call[]) => string | undefined = () => undefined) {
  const calls: Call[] = [];
  const host: PackageHost = {
    isRoot: () => true,
    osRelease: () => BOOKWORM,
    policyFile,
    run: async (command, args, { env }) => {
      const line = [command, ...args].join(' ');
      calls.push({ line, env, policy: existsSync(policyFile) ? readFileSync(policyFile, 'utf8') : undefined });
      const failure = answer(line, calls);
      if (failure !== undefined) throw new CommandError(`${command}: code 100`, failure, '');
      return '';
    },
  };
  return { host, calls, installs: () => calls.filter(({ line }) => line.includes(' install ')) };
}

describe('installing system packages', () => {
  it('is one call for all, quiet, patient with the lock, without recommended ones', async () => {
    const { host, installs } = machine();
    const said: string[] = [];
    expect(await installPackages(['ceph-mon', 'redis-server'], line => said.push(line), host)).toBeUndefined();
    expect(installs()).toHaveLength(1);
    expect(installs()[0]).toMatchObject({
      line: 'apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends ceph-mon redis-server',
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    });
    expect(said).toContain('apt-get install ceph-mon redis-server');
  });

  it('updates the lists only when a package is unknown', async () => {
    const known = machine();
    await installPackages(['redis-server'], () => {}, known.host);
    expect(known.calls.some(({ line }) => line.includes('update'))).toBe(false);
    const unknown = machine(line => (line.startsWith('apt-cache') ? 'E: No packages found' : undefined));
    await installPackages(['redis-server'], () => {}, unknown.host);
    expect(unknown.calls.map(({ line }) => line.includes('update'))).toEqual([false, true, false]);
  });

  it('lets no service start meanwhile, and takes that back', async () => {
    const { host, installs } = machine();
    await installPackages(['redis-server'], () => {}, host);
    expect(installs()[0]?.policy).toMatch(/^#!\/bin\/sh\n.*exit 101\n$/s);
    expect(existsSync(policyFile)).toBe(false);
  });

  it('keeps the policy that the machine has', async () => {
    writeFileSync(policyFile, '#!/bin/sh\nexit 0\n');
    const { host, installs } = machine();
    await installPackages(['redis-server'], () => {}, host);
    expect(installs()[0]?.policy).toBe('#!/bin/sh\nexit 0\n');
    expect(readFileSync(policyFile, 'utf8')).toBe('#!/bin/sh\nexit 0\n');
  });

  it('tries once more, then answers with the last line of apt', async () => {
    const once = machine((line, calls) =>
      line.includes(' install ') && calls.filter(call => call.line === line).length === 1 ? 'E: 404' : undefined,
    );
    expect(await installPackages(['redis-server'], () => {}, once.host)).toBeUndefined();
    const never = machine(line => (line.includes(' install ') ? 'Reading...\nE: Unable to fetch\n' : undefined));
    expect(await installPackages(['redis-server'], () => {}, never.host)).toBe('E: Unable to fetch');
    expect(never.installs()).toHaveLength(2);
    expect(existsSync(policyFile)).toBe(false);
  });

  it('is for root on Debian and Ubuntu', () => {
    const { host } = machine();
    expect(cannotInstall(host)).toBeUndefined();
    expect(cannotInstall({ ...host, osRelease: () => 'ID=linuxmint\nID_LIKE="ubuntu debian"\n' })).toBeUndefined();
    expect(cannotInstall({ ...host, osRelease: () => 'ID=fedora\n' })).toContain('Debian');
    expect(cannotInstall({ ...host, osRelease: () => '' })).toContain('Debian');
    expect(cannotInstall({ ...host, isRoot: () => false })).toContain('root');
  });
});
