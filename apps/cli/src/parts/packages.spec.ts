import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CommandError } from './command.js';
import { cannotInstall, installPackages, type PackageHost, progress } from './packages.js';

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

const shown = (names: readonly string[]): string => names.map(name => `Package: ${name}\nVersion: 1\n`).join('\n');

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
      return command === 'apt-cache' ? shown(args.slice(1)) : '';
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
    expect(known.calls.some(({ line }) => line.endsWith('update -q'))).toBe(false);
    const unknown = machine(line => (line.startsWith('apt-cache') ? 'E: No packages found' : undefined));
    await installPackages(['redis-server'], () => {}, unknown.host);
    expect(unknown.calls.some(({ line }) => line.endsWith('update -q'))).toBe(true);
    // apt-cache answers with what it knows, and 0: mount is on every Debian, whatever the lists hold.
    const partly = machine();
    const { run } = partly.host;
    partly.host.run = async (command, args, options) =>
      run(command, args, options).then(text => (command === 'apt-cache' ? shown(['mount']) : text));
    await installPackages(['redis-server', 'mount'], () => {}, partly.host);
    expect(partly.calls.some(({ line }) => line.endsWith('update -q'))).toBe(true);
  });

  it('says why the lists could not be updated, when nothing can be installed', async () => {
    const away = machine(line => {
      if (line.startsWith('apt-cache')) return 'E: No packages found';
      if (line.endsWith('update -q') && line.includes('APT::Update::Error-Mode=any'))
        return 'W: Failed to fetch http://mirror/  Could not resolve\nE: Some index files failed to download.\n';
      return line.includes(' install ') ? 'E: Unable to locate package tgt\n' : undefined;
    });
    expect(await installPackages(['tgt'], () => {}, away.host)).toBe(
      'E: Unable to locate package tgt; apt-get update: W: Failed to fetch http://mirror/  Could not resolve',
    );
  });

  it('lets none of the services start at the next boot either', async () => {
    const { host, calls } = machine();
    expect(await installPackages(['redis-server', 'ceph-mon', 'tgt'], () => {}, host)).toBeUndefined();
    const lines = calls.map(({ line }) => line);
    expect(lines.slice(-2)).toEqual(['update-rc.d redis-server disable', 'update-rc.d tgt disable']);
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

describe('what is said meanwhile', () => {
  it('is the package that apt is at, now and then', () => {
    let at = 0;
    const said: string[] = [];
    const onLine = progress(
      line => said.push(line),
      () => at,
    );
    const tell = (ms: number, line: string): void => {
      at = ms;
      onLine(line);
    };
    tell(100, 'Get:1 http://deb.example.org/debian bookworm/main amd64 ceph-mon amd64 16.2 [6 MB]');
    tell(2_500, 'Get:2 http://deb.example.org/debian bookworm/main amd64 ceph-osd amd64 16.2 [6 MB]');
    tell(2_600, 'Unpacking ceph-mon (16.2) ...');
    tell(9_000, 'Reading package lists...');
    tell(9_100, 'Setting up ceph-mon (16.2) ...');
    expect(said).toEqual([
      '  apt: fetching ceph-osd (2 fetched, 0 set up)',
      '  apt: setting up ceph-mon (2 fetched, 1 set up)',
    ]);
  });
});
