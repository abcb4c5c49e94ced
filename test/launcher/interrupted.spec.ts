import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { compileCache } from '#test/support/compile-cache';
import { until } from '#test/support/parts';
import { MAIN, processesOf, TestHomes } from './cli.js';

const homes = new TestHomes();
afterAll(() => homes.clear());

describe('a first up that is interrupted', () => {
  it.each(['secrets/postgres.json', 'redis/redis.conf', 'ceph/ceph.conf', 'ceph/osd/keyring', 'log/radosgw.log'])(
    'by SIGKILL once %s is there is made good by the next',
    async milestone => {
      const home = homes.at(`killed-${milestone.replaceAll('/', '-')}`);
      const child = spawn(process.execPath, [MAIN, 'up', '--parts-only', '--no-install'], {
        env: { PATH: home.path, TRIVET_HOME: home.home, ...compileCache() },
        stdio: 'ignore',
      });
      await until(milestone, () => existsSync(home.file(milestone)));
      child.kill('SIGKILL');
      await home.must('up', '--detach', '--parts-only', '--no-install');
      expect(await home.status()).toMatchObject({ state: 'ready', skipped: [], backends: [{ state: 'up' }] });
      await home.must('down', '--purge', '--yes');
    },
  );

  it('by Ctrl-C takes down what it started', async () => {
    const home = homes.at('interrupted');
    mkdirSync(home.home, { recursive: true });
    const child = spawn(process.execPath, [MAIN, 'up', '--parts-only', '--no-install'], {
      env: { PATH: home.path, TRIVET_HOME: home.home, ...compileCache() },
      stdio: 'ignore',
    });
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve));
    await until('the mon starts', () => existsSync(home.file('log', 'ceph-mon.a.log')));
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(processesOf(home.home)).toEqual([]);
  });
});
