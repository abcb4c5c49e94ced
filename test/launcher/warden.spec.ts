import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { until } from '#test/support/parts';
import {
  commandLineOf,
  identify,
  isAlive,
  type ProcessId,
  pids,
  signal,
} from '../../apps/cli/src/processes/process.js';

const WARDEN = join(PACKAGE_ROOT, 'dist', 'apps', 'cli', 'src', 'testing', 'warden.js');
const folder = mkdtempSync(join(tmpdir(), 'warden-'));
const known: ProcessId[] = [];
afterAll(() => {
  for (const id of known) signal(id, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** A child, a grandchild that its parent left for a session of its own, and both pids in a file. */
const family = (file: string, then: string) => `
  sleep 600 & echo $! >> ${file}
  (setsid sleep 600 & echo $! >> ${file})
  echo complete >> ${file}
  ${then}`;

const start = (script: string): ChildProcess =>
  spawn(process.execPath, [WARDEN, '/bin/sh', '-c', script], { env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore' });

async function membersOf(file: string): Promise<ProcessId[]> {
  await until('the family is complete', () => existsSync(file) && readFileSync(file, 'utf8').includes('complete'));
  const pids = readFileSync(file, 'utf8').match(/\d+/g)!.map(Number);
  const ids = pids.flatMap(pid => identify(pid) ?? []);
  known.push(...ids);
  return ids;
}

describe('the warden of a test run', () => {
  it("ends with the command's code, and with all that came of it", async () => {
    const file = join(folder, 'ended');
    // The shell waits until its family was looked at.
    const warden = start(family(file, `until [ -e ${file}.seen ]; do sleep 0.1; done; exit 7`));
    const exit = once(warden, 'exit');
    const members = await membersOf(file);
    expect(members).toHaveLength(2);
    expect(members.every(isAlive)).toBe(true);
    await once(spawn('touch', [`${file}.seen`]), 'exit');
    expect(await exit).toEqual([7, null]);
    expect(members.filter(isAlive)).toEqual([]);
  });

  it('ends all of it when it is told to', async () => {
    const file = join(folder, 'told');
    const warden = start(family(file, 'exec sleep 600'));
    const exit = once(warden, 'exit');
    const members = await membersOf(file);
    expect(members).toHaveLength(2);
    warden.kill('SIGTERM');
    await exit;
    expect(members.filter(isAlive)).toEqual([]);
  });

  it('ends all of it when who started it was killed', async () => {
    const file = join(folder, 'killed');
    const args = JSON.stringify([WARDEN, '/bin/sh', '-c', family(file, 'exec sleep 600')]);
    const script = `require('child_process').spawn(process.execPath, ${args}, { stdio: 'ignore' })`;
    const parent = spawn(process.execPath, ['-e', script], { env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore' });
    const members = await membersOf(file);
    expect(members).toHaveLength(2);
    parent.kill('SIGKILL');
    await until('nothing of it lives', () => !members.some(isAlive));
  });

  it('loses nobody who changes hands while it looks', async () => {
    const chain = join(folder, 'chain');
    // Each starts the next and ends soon after, so that the warden adopts somebody all the time.
    writeFileSync(
      chain,
      '[ "$1" = 0 ] && { echo $$ > "$2"; exec sleep 600; }; sh "$0" $(($1 - 1)) "$2" & sleep 0.01; exit 0',
    );
    const files = Array.from({ length: 12 }, (_, at) => join(folder, `chain-${at}`));
    for (const batch of [files.slice(0, 6), files.slice(6)]) {
      await Promise.all(batch.map(file => once(start(`exec sh ${chain} 60 ${file}`), 'exit')));
    }
    const last = files.flatMap(file => (existsSync(file) ? [Number(readFileSync(file, 'utf8'))] : []));
    const links = pids().filter(pid => commandLineOf(pid).includes(chain));
    const left = [...last, ...links].flatMap(pid => identify(pid) ?? []);
    known.push(...left);
    expect(left).toEqual([]);
  });

  it('reaps at once whoever was given up', async () => {
    const file = join(folder, 'reaped');
    const warden = start(`(setsid sh -c 'echo $$ > ${file}; exec sleep 600' &); exec sleep 600`);
    const pid = Number(await until('its pid', () => existsSync(file) && readFileSync(file, 'utf8').trim()));
    known.push(identify(pid)!);
    process.kill(pid, 'SIGKILL');
    await until('nothing of it is left', () => !existsSync(`/proc/${pid}`));
    warden.kill('SIGTERM');
    await once(warden, 'exit');
  });
});
