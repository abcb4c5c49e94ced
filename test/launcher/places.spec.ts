import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { HOME_MARK } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { parts } from '#test/support/parts';
import { processesOf, type TestHome, TestHomes } from './cli.js';

const homes = new TestHomes();
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
afterAll(() => homes.clear());

/** Without Ceph, which needs its seconds: an object store somewhere else. */
function withoutCeph(home: TestHome): TestHome {
  const { rgw } = parts();
  home.settings.TRIVET_RGW_ENDPOINT = rgw?.endpoint ?? 'http://127.0.0.1:9';
  return home;
}

const upAndDown = async (home: TestHome): Promise<void> => {
  const said = await home.must('up', '--detach', '--parts-only', '--no-install');
  // A gateway in a fresh database waits for a schema, and ends.
  expect(said).toContain('&& ./trivet migrate && npx nest start gateway --watch');
  expect((await home.status()).state).toBe('ready');
  await home.must('down');
  await home.must('up', '--detach', '--parts-only', '--no-install');
  expect((await home.status()).processes.map(row => row.name).sort()).toEqual(['postgres', 'redis']);
};

describe('a home', () => {
  it('in a path too long for sockets has short ones', async () => {
    const home = withoutCeph(
      homes.at(...Array.from({ length: 6 }, (_, index) => `a-rather-long-folder-name-${index}`)),
    );
    await upAndDown(home);
    const run = readFileSync(home.file('run-dir'), 'utf8').trim();
    expect(run.startsWith(home.home)).toBe(false);
    expect(home.environment().COSI_ENDPOINT).toBe(`unix://${run}/cosi/cosi.sock`);
    await home.must('down', '--purge', '--yes');
    expect(existsSync(run)).toBe(false);
  });

  it('may have blanks and quotes in its path', async () => {
    await upAndDown(withoutCeph(homes.at(`it's "my" home`)));
  });

  it.runIf(isRoot)('below a folder of mode 0700 keeps data where their user can reach them', async () => {
    homes.folderAt('closed', 0o700);
    const home = withoutCeph(homes.at('closed', 'home'));
    await upAndDown(home);
    const { dataOutside } = await home.status();
    expect(dataOutside).toMatch(/^\/var\/lib\/trivet\/\w+$/);
    expect(existsSync(join(dataOutside as string, 'postgres', 'data', 'PG_VERSION'))).toBe(true);
    await home.must('down', '--purge', '--yes');
    expect(existsSync(dataOutside as string)).toBe(false);
  });

  const reachable = (statSync(PACKAGE_ROOT).mode & 0o005) === 0o005;
  it.runIf(isRoot && reachable)('of an unprivileged user runs as that user', async () => {
    const folder = homes.folderAt('theirs', 0o700);
    chownSync(folder, NOBODY, NOBODY);
    const home = withoutCeph(homes.at('theirs', 'home'));
    home.uid = NOBODY;
    await upAndDown(home);
    const { pid } = await home.process('postgres');
    expect(statSync(`/proc/${pid}`).uid).toBe(NOBODY);
    expect((await home.status()).dataOutside).toBeUndefined();
  });

  it('keeps its ports and its key file, and takes another port where a stranger sits', async () => {
    const home = withoutCeph(homes.at('ports'));
    await upAndDown(home);
    const ports = (): Record<string, number> => JSON.parse(readFileSync(home.file('ports.json'), 'utf8'));
    const before = ports();
    await home.must('down');
    const stranger = createServer().listen(before.redis, '127.0.0.1');
    await new Promise(resolve => stranger.once('listening', resolve));
    // A second one is faster than the server for which another port was chosen.
    const bin = homes.folderAt('slow', 0o755);
    const faster = join(bin, 'faster');
    const listen = `net.createServer().listen(+process.argv[1],"127.0.0.1",()=>fs.writeFileSync("${faster}",process.argv[1]+" "+process.pid))`;
    writeFileSync(
      join(bin, 'redis-server'),
      `#!/bin/sh
if [ ! -f ${faster} ]; then
  env -u ${HOME_MARK} setsid ${process.execPath} -e '${listen}' "$(sed -n 's/^port //p' "$1")" &
  until [ -s ${faster} ]; do sleep 0.05; done
fi
exec /usr/bin/redis-server "$@"
`,
      { mode: 0o755 },
    );
    home.path = `${bin}:${home.path}`;
    try {
      const said = await home.must('up', '--detach', '--parts-only');
      const [port, pid] = readFileSync(faster, 'utf8').split(' ').map(Number) as [number, number];
      process.kill(pid, 'SIGKILL');
      expect(said).toContain(`redis: port ${port} is taken by node, pid ${pid}; another port is chosen\n`);
      expect(ports()).toEqual({ ...before, redis: expect.any(Number) });
      expect([before.redis, port]).not.toContain(ports().redis);
      expect(said).toContain(
        `the port of redis is ${ports().redis} instead of ${before.redis}, which somebody else has\n`,
      );
    } finally {
      stranger.close();
    }
    // And refuses to start without its key file, before it touches anything.
    await home.must('down');
    const key = readFileSync(home.file('key-id'), 'utf8').trim();
    rmSync(home.file('kek'));
    const started = statSync(home.file('postgres', 'data', 'postmaster.opts')).mtimeMs;
    const { code, stdout, stderr } = await home.run('up', '--detach', '--no-install');
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain(`${home.file('kek')} is missing, and what this home keeps is sealed with its key, ${key}`);
    expect(existsSync(home.file('kek'))).toBe(false);
    expect(statSync(home.file('postgres', 'data', 'postmaster.opts')).mtimeMs).toBe(started);
  });
});

describe('what cannot run', () => {
  it('is said with its reason and remedy, and the rest runs', async () => {
    const home = homes.at('bare');
    const bin = homes.folderAt('empty-path', 0o755);
    for (const name of ['test', 'sh']) symlinkSync(`/usr/bin/${name}`, join(bin, name));
    home.path = bin;
    const said = await home.must('up', '--detach', '--no-install');
    const { state, skipped, cosi, processes } = await home.status();
    expect(state).toBe('ready');
    expect(skipped.map(({ part, remedy }) => `${part}: ${remedy}`)).toEqual([
      'redis: apt-get install redis-server, or set TRIVET_REDIS_URL',
      'rgw: apt-get install ceph-mon ceph-osd radosgw ceph-common, or set TRIVET_RGW_ENDPOINT',
      'xfs: apt-get install xfsprogs mount, or set TRIVET_POOLS to a folder on XFS or btrfs',
    ]);
    expect(cosi).toBeUndefined();
    // The worker starts its tgtd when it comes to it.
    const kept = processes.map(row => row.name).filter(name => !name.startsWith('tgtd.'));
    expect(kept.sort()).toEqual(['gateway', 'postgres', 'worker']);
    expect(home.environment().TRIVET_REDIS_URL).toBe('none');
    expect(said).toContain('redis-server is not installed');
    // Its addresses are taken: no gateway of somebody's own could use its settings.
    const remedy = 'gateway and worker included; for one of your own: ./trivet down, then up --parts-only';
    expect(await home.run('up', '--detach', '--parts-only', '--no-install')).toEqual({
      code: 1,
      stdout: '',
      stderr: `trivet: ${home.home} runs as a whole, ${remedy}\n`,
    });
    expect(await home.must('up', '--detach', '--no-install')).toMatch(/^already up, supervisor \d+\n/);
  });

  it('by a wrong setting stops at once with code 78', async () => {
    const home = homes.at('wrong');
    home.settings.TRIVET_HTTP_LISTEN = 'everywhere';
    home.settings.TRIVET_TYPO = '1';
    const { code, stderr } = await home.run('up', '--detach');
    expect(code).toBe(78);
    expect(stderr).toContain('TRIVET_HTTP_LISTEN: expected host:port');
    expect(stderr).toContain('TRIVET_TYPO: unknown variable');
    expect(existsSync(home.home)).toBe(false);
  });

  it('by a key file that is missing, malformed or a folder stops with code 78 before any part', async () => {
    const home = homes.at('keys');
    const bad = homes.folderAt('bad-keys', 0o755);
    writeFileSync(join(bad, 'short'), 'c2hvcnQ=\n', { mode: 0o600 });
    const refused = async (file: string, why: string, setting: string | undefined): Promise<void> => {
      if (setting !== undefined) home.settings.TRIVET_KEK_FILE = setting;
      const ended = await home.run('up', '--detach', '--no-install');
      const stderr = `trivet: configuration: TRIVET_KEK_FILE: ${why.replace('FILE', file)}\n`;
      expect(ended).toEqual({ code: 78, stdout: '', stderr });
      delete home.settings.TRIVET_KEK_FILE;
    };
    const SHORT = 'FILE line 1: expected 32 bytes in base64, got 5 bytes';
    for (const [name, why] of [
      ['none', 'cannot read FILE: ENOENT'],
      ['short', SHORT],
      ['', 'FILE is not a file'],
    ] as const)
      await refused(join(bad, name), why, join(bad, name));
    // Of the home itself, also by a name that counts from there.
    writeFileSync(home.file('kek'), 'c2hvcnQ=\n', { mode: 0o600 });
    for (const setting of [undefined, '', 'kek']) await refused(home.file('kek'), SHORT, setting);
    for (const started of ['state.json', 'postgres', 'redis']) expect(existsSync(home.file(started))).toBe(false);
    // Doctor, who comes later, has what up said, and looks at the same.
    writeFileSync(home.file('kek'), randomBytes(32).toString('base64'));
    chmodSync(home.file('kek'), 0o644);
    expect(await home.run('up', '--detach', '--no-install')).toMatchObject({ code: 78 });
    const port = createServer().listen(0, '127.0.0.1');
    await new Promise(resolve => port.once('listening', resolve));
    const taken = (port.address() as AddressInfo).port;
    writeFileSync(home.file('ports.json'), JSON.stringify({ redis: taken }));
    const { code, stdout } = await home.run('doctor');
    port.close();
    expect(code).toBe(1);
    expect(stdout).toMatch(/^fail {2}last up: failed at \S+: TRIVET_KEK_FILE: .*644/m);
    expect(stdout).toContain(`fail  key file: ${home.file('kek')} has mode 644: others may read it; chmod 600`);
    expect(stdout).toMatch(new RegExp(`^warn {2}port of redis: ${taken} is taken by \\S+, pid ${process.pid}`, 'm'));
    expect(stdout).toContain('ok    leftovers: none');
  });

  it.runIf(isRoot)('on a disk that is full stops at once with code 74, and says so in one line', async () => {
    const disk = homes.folderAt('full', 0o755);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'full-disk', disk]);
    try {
      writeFileSync(join(disk, 'others'), Buffer.alloc(8_192));
      const { code, stderr } = await homes.at('full', 'home').run('up', '--detach');
      expect(stderr).toMatch(/^trivet: .*ENOSPC.*\n$/);
      expect(code).toBe(74);
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });

  it.runIf(isRoot)('on a disk too small for what it makes stops at once with code 74, before any part', async () => {
    const disk = homes.folderAt('small', 0o755);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'small-disk', disk]);
    try {
      const { code, stdout, stderr } = await homes.at('small', 'home').run('up', '--detach');
      expect(stderr).toMatch(/^trivet: \S+: the disk is full: [\d.]+ MiB free, and up needs 128 MiB; make room, .*\n$/);
      expect({ code, stdout }).toEqual({ code: 74, stdout: '' });
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });

  it.each([
    ['migrate', 'TRIVET_RGW_ACCESS_KEY_FILE', 'TRIVET_RGW_SECRET_KEY_FILE'],
    ['gateway', 'TRIVET_TLS_CERT_FILE', 'TRIVET_TLS_KEY_FILE'],
  ])('for a %s that ends with code 78 fails up with its line, and leaves nothing', async (name, setting, other) => {
    const home = withoutCeph(homes.at(`no-keys-${name}`));
    const key = join(homes.folderAt('rgw-keys', 0o755), 'key');
    writeFileSync(key, 'not asked for');
    for (const rgw of ['ACCESS', 'SECRET']) home.settings[`TRIVET_RGW_${rgw}_KEY_FILE`] = key;
    home.settings[setting] = '/no/such/file';
    home.settings[other] = '/no/such/file';
    const { code, stdout } = await home.run('up', '--detach');
    expect(code).toBe(78);
    // Of its log nothing but why.
    const why = `${setting}: cannot read /no/such/file: ENOENT`;
    const how = name === 'gateway' ? 'gateway: ended' : 'migrate ended';
    const said = `trivet: ${how} with code 78: ${why}; log: ${home.file('log', `${name}.log`)}\n`;
    expect(stdout.slice(-said.length)).toBe(said);
    expect(stdout).not.toContain('{');
    expect((await home.status()).state).toBe('failed');
    expect(processesOf(home.home)).toEqual([]);
  });
});
