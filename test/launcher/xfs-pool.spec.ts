import { spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parts, until } from '#test/support/parts';
import { MAIN, type TestHome, TestHomes } from './cli.js';

const homes = new TestHomes();
const NOBODY = 65_534;
afterAll(() => homes.clear());

/** PostgreSQL and the pool alone. */
function home(...names: string[]): TestHome {
  const made = homes.at(...names);
  Object.assign(made.settings, { TRIVET_RGW_ENDPOINT: 'http://127.0.0.1:9', TRIVET_REDIS_URL: 'none' });
  return made;
}

const up = (of: TestHome): Promise<string> => of.must('up', '--detach', '--parts-only', '--no-install');
const isMounted = (of: TestHome): boolean => statSync(of.file('pool')).dev !== statSync(of.home).dev;

/** Loop devices over files of this home. */
function loopDevices(of: TestHome): string[] {
  return readdirSync('/sys/block').filter(name => {
    const file = `/sys/block/${name}/loop/backing_file`;
    return existsSync(file) && readFileSync(file, 'utf8').startsWith(of.home);
  });
}

/** As its superblock has it: 16 bytes at offset 32. */
function xfsUuid(image: string): string {
  const uuid = Buffer.alloc(16);
  const file = openSync(image, 'r');
  readSync(file, uuid, 0, uuid.length, 32);
  closeSync(file);
  return uuid.toString('hex');
}

describe.skipIf(!parts().xfs)('the XFS image of a home', () => {
  it('is mounted by up, keeps what it holds, and is gone after down', async () => {
    const mine = home('a home, "mine"');
    await up(mine);
    const [, path = ''] = /^default=([^,]+)$/.exec(mine.environment().TRIVET_POOLS as string) ?? [];
    expect(realpathSync(path), 'without a comma, which tgtd does not take').toBe(mine.file('pool'));
    expect(isMounted(mine)).toBe(true);
    expect(statSync(mine.file('pool')).mode & 0o777).toBe(0o700);
    expect(statSync(mine.file('pool.xfs')).blocks * 512).toBeLessThan(512 * 1024 * 1024);
    writeFileSync(mine.file('pool', 'kept'), 'data');

    process.kill(mine.supervisor, 'SIGKILL');
    await up(mine);
    expect(readFileSync(mine.file('pool', 'kept'), 'utf8')).toBe('data');
    expect(loopDevices(mine)).toHaveLength(1);

    await mine.must('down');
    expect(isMounted(mine)).toBe(false);
    expect(loopDevices(mine)).toEqual([]);
    expect(readdirSync(mine.file('pool')), 'never an empty folder, which could be taken for a new pool').toEqual([
      'NOT-MOUNTED',
    ]);

    await up(mine);
    expect(readFileSync(mine.file('pool', 'kept'), 'utf8')).toBe('data');
    process.kill(mine.supervisor, 'SIGKILL');
    await mine.must('down');
    expect(loopDevices(mine)).toEqual([]);
  });

  it('is not purged while somebody holds it', async () => {
    const mine = home('held');
    await up(mine);
    const holder = spawn('/bin/sleep', ['60'], { cwd: mine.file('pool'), stdio: 'ignore' });
    try {
      const { code, stderr } = await mine.run('down', '--purge', '--yes');
      expect(code).toBe(1);
      expect(stderr).toContain(
        `nothing is deleted: ${mine.file('pool')} is mounted, and in use by sleep, pid ${holder.pid}`,
      );
      expect(existsSync(mine.file('pool.xfs'))).toBe(true);
      expect(await mine.run('down')).toMatchObject({ code: 1, stderr: expect.stringContaining(`pid ${holder.pid}`) });
    } finally {
      const ended = new Promise(resolve => holder.once('exit', resolve));
      holder.kill('SIGKILL');
      await ended;
    }
    await mine.must('down', '--purge', '--yes');
    expect(existsSync(mine.home)).toBe(false);
  });

  it('is made anew when its first mkfs was killed', async () => {
    const mine = home('killed');
    // One that never ends: the real one takes some milliseconds.
    const bin = homes.folderAt('endless', 0o755);
    const begun = join(bin, 'begun');
    writeFileSync(
      join(bin, 'mkfs.xfs'),
      `#!/bin/sh\necho $$ > ${begun}.new && mv ${begun}.new ${begun}\nexec sleep 600\n`,
      {
        mode: 0o755,
      },
    );
    const child = spawn(process.execPath, [MAIN, 'up', '--parts-only', '--no-install'], {
      env: { PATH: `${bin}:${mine.path}`, TRIVET_HOME: mine.home, ...mine.settings },
      stdio: 'ignore',
    });
    await until('the image is begun', () => existsSync(begun));
    child.kill('SIGKILL');
    process.kill(Number(readFileSync(begun, 'utf8')), 'SIGKILL');
    expect(existsSync(mine.file('pool.xfs.new'))).toBe(true);
    await up(mine);
    expect(isMounted(mine)).toBe(true);
    expect([existsSync(mine.file('pool.xfs')), existsSync(mine.file('pool.xfs.new'))]).toEqual([true, false]);
  });

  it('does not replace a plain folder that holds volumes', async () => {
    const mine = home('plain');
    mkdirSync(mine.file('volumes', 'volumes'), { recursive: true });
    writeFileSync(mine.file('volumes', 'volumes', 'one'), 'data');
    // Of an earlier start, without root: in a folder that is no home nothing would be made.
    writeFileSync(mine.file('id'), '0123456789ab\n');
    await up(mine);
    expect(mine.environment().TRIVET_POOLS).toBe(`default=${mine.file('volumes')}`);
    expect(existsSync(mine.file('pool.xfs'))).toBe(false);
  });

  it("does not replace a plain folder with somebody else's pool in it", async () => {
    const mine = home('shared');
    mkdirSync(mine.file('volumes', 'acme', 'volumes'), { recursive: true });
    writeFileSync(mine.file('id'), 'abcdef012345\n');
    await up(mine);
    expect(existsSync(mine.file('pool.xfs'))).toBe(false);
  });

  it('takes the place of a plain folder without volumes, as the same pool', async () => {
    const mine = home('empty');
    mkdirSync(mine.file('volumes', 'volumes'), { recursive: true });
    const marker = {
      format: 1,
      uuid: '6f0c7c1e-5b43-4a2e-9f39-0b8f3f0d7a11',
      applianceId: 'ba9876543210',
      tenantId: 'b5a2c7d4-8f61-4b7e-9d0a-3c1e5f7a9b2d',
      createdAt: '2026-11-20T10:00:00.000Z',
    };
    writeFileSync(mine.file('volumes', 'trivet-pool.json'), JSON.stringify({ ...marker, fileSystem: 'another' }));
    writeFileSync(mine.file('id'), 'ba9876543210\n');
    await up(mine);
    expect(isMounted(mine)).toBe(true);
    const inherited = JSON.parse(readFileSync(mine.file('pool', 'trivet-pool.json'), 'utf8'));
    expect(inherited).toEqual({ ...marker, fileSystem: xfsUuid(mine.file('pool.xfs')) });
  });

  it('is not left out for a user without root: a plain folder is the pool, and that is said', async () => {
    const folder = homes.folderAt('theirs', 0o755);
    chownSync(folder, NOBODY, NOBODY);
    const mine = home('theirs', 'home');
    mine.uid = NOBODY;
    await up(mine);
    const { skipped } = await mine.status();
    expect(skipped.find(({ part }) => part === 'xfs')).toMatchObject({
      reason: expect.stringContaining('snapshots copy their data'),
      remedy: expect.stringContaining('TRIVET_POOLS'),
    });
    expect(mine.environment().TRIVET_POOLS).toBe(`default=${mine.file('volumes')}`);
    expect(statSync(mine.file('volumes'))).toMatchObject({ uid: NOBODY });
  });
});
