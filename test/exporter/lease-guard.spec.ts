import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bootClock, bootId } from '#backends/linux/boot-clock';
import { GUARD } from '#backends/tgt/lease-guard';
import { until } from '#test/support/parts';

const LONG_MS = 3_600_000;

let folder: string;
let asked: string;
let daemon: ChildProcess;
let guard: ChildProcess | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trivet-guard-'));
  asked = join(folder, 'asked');
  mkdirSync(join(folder, 'bin'));
  program('tgtd', 'while :; do read -r _; done < /dev/zero');
  writeFileSync(join(folder, 'addresses'), '');
  writeFileSync(join(folder, 'renewed'), `${bootClock() + LONG_MS} ${bootId()}\n`);
  // With an argument of its own it is known, as each tgtd of ours.
  daemon = spawn(join(folder, 'bin', 'tgtd'), [join(folder, 'pid')], { stdio: 'ignore' });
  await once(daemon, 'spawn');
});
afterEach(async () => {
  for (const one of [daemon, guard]) {
    if (!one || one.exitCode !== null || one.signalCode !== null) continue;
    one.kill('SIGKILL');
    await once(one, 'exit');
  }
  guard = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function program(name: string, script: string): void {
  const path = join(folder, 'bin', name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

function guards(lease = `0 ${bootId()}`): void {
  writeFileSync(join(folder, 'lease'), `${lease}\n`);
  const env = { PATH: `${join(folder, 'bin')}:/usr/sbin:/sbin:/usr/bin:/bin` };
  guard = spawn('sh', ['-c', GUARD, 'guard', folder], { env, stdio: 'ignore' });
}

const passes = () => {
  try {
    return readFileSync(asked, 'utf8').length;
  } catch {
    return 0;
  }
};

it('ends the daemon of a pool whose lease is over', async () => {
  guards();
  await until('it is killed', () => daemon.signalCode === 'SIGKILL');
});

it('leaves a daemon alone that its host ends by itself, for as long as the lease is', async () => {
  program('sleep', `printf x >> '${asked}'; exec /bin/sleep "$@"`);
  guards(`${bootClock() + LONG_MS} ${bootId()} leaving`);
  await until('it waits', () => passes() > 0);
  expect(daemon.signalCode).toBeNull();
});

it('leaves a daemon alone that was found when the host got the pool again', async () => {
  program('grep', `/bin/grep "$@"; mv '${folder}/renewed' '${folder}/lease' 2>/dev/null; printf x >> '${asked}'`);
  program('sleep', `printf x >> '${asked}'; exec /bin/sleep "$@"`);
  guards();
  // It has looked for processes, and sleeps because there is time again.
  await until('it goes on', () => passes() > 1);
  expect(daemon.signalCode).toBeNull();
});

it('leaves an address alone when the host gets the pool again while others are removed', async () => {
  writeFileSync(join(folder, 'addresses'), '192.0.2.1/32 lo\n192.0.2.2/32 lo\n');
  const told = join(folder, 'told');
  program('ip', `mv '${folder}/renewed' '${folder}/lease' 2>/dev/null; echo "$3" >> '${told}'`);
  program('sleep', `printf x >> '${asked}'; exec /bin/sleep "$@"`);
  guards();
  await until('it goes on', () => passes() > 0);
  expect(readFileSync(told, 'utf8')).toBe('192.0.2.1/32\n');
  expect(daemon.signalCode).toBeNull();
});
