import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compileCache } from '#test/support/compile-cache';
import { until } from '#test/support/parts';
import {
  commandLineOf,
  identify,
  isAlive,
  type ProcessId,
  parentOf,
  pids,
} from '../../apps/cli/src/processes/process.js';
import { MAIN, processesOf } from './cli.js';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'runs-')));
  // PostgreSQL's user passes through.
  chmodSync(folder, 0o711);
});
afterEach(async () => {
  for (const { child, ended } of runs.splice(0)) {
    child.kill('SIGINT');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  child: ChildProcess;
  ended: Promise<{ code: number | null; output: string; last: string }>;
}
const runs: Run[] = [];

function run(args: string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [MAIN, 'test', '--no-install', ...args], {
    env: { PATH: '/usr/bin:/bin', TMPDIR: folder, LANG: 'C.UTF-8', ...compileCache(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', chunk => {
    output += chunk;
  });
  const ended = new Promise<{ code: number | null; output: string; last: string }>(resolve => {
    child.once('close', code => resolve({ code, output, last: output.trimEnd().split('\n').at(-1) ?? '' }));
  });
  const started = { child, ended };
  runs.push(started);
  return started;
}

/** Living processes below this one, with their command lines. */
function descendantsOf(root: number): { id: ProcessId; line: string }[] {
  const above = new Map(pids().map(pid => [pid, parentOf(pid)]));
  const isBelow = (pid = 0): boolean => pid !== 0 && (above.get(pid) === root || isBelow(above.get(pid)));
  return [...above.keys()].filter(isBelow).flatMap(pid => {
    const id = identify(pid);
    return id === undefined ? [] : [{ id, line: commandLineOf(pid) }];
  });
}

const homes = (): string[] => readdirSync(folder).filter(name => name.startsWith('trivet-test-'));

describe('trivet test', () => {
  it('closes with one plain line, and leaves no home', async () => {
    const { code, last } = await run(['--project', 'unit', 'apps/cli/src/testing/report.spec.ts']).ended;
    expect({ code, last }).toEqual({ code: 0, last: '7 passed, 0 failed, 0 skipped' });
    expect(homes()).toEqual([]);
  });

  it('fails when no test matches', async () => {
    const { code, output, last } = await run(['--project', 'unit', 'no-such-test']).ended;
    expect(code).toBe(1);
    expect(output).toContain('FAILED no test matches no-such-test');
    expect(last).toBe('0 passed, 1 failed, 0 skipped');
  });

  it('fails for a required part that is missing, with its reason', async () => {
    // A PATH without Redis and Ceph.
    const { code, output } = await run(['--project', 'parts', 'no-such-test'], {
      PATH: folder,
      TRIVET_REQUIRE: 'postgres,redis,rgw',
    }).ended;
    expect(code).toBe(1);
    expect(output).toContain('FAILED required part redis: redis-server is not installed');
    expect(output).toMatch(/FAILED required part rgw: .*radosgw.* are not installed; no object store/);
    expect(output).not.toContain('FAILED required part postgres');
  });

  it('takes its parts down when it is interrupted', async () => {
    const { child, ended } = run(['--project', 'parts', 'no-such-test']);
    const home = await until('its home', () => homes()[0]);
    await until('the mon starts', () => existsSync(join(folder, home, 'log', 'ceph-mon.a.log')));
    child.kill('SIGINT');
    const { code, last } = await ended;
    expect(code).toBe(130);
    expect(last).toBe('0 passed, 1 failed, 0 skipped');
    expect(homes()).toEqual([]);
    expect(processesOf(join(folder, home))).toEqual([]);
  });

  it('ends what its test files started when it is interrupted', async () => {
    // A PATH without Redis and Ceph.
    const files = ['--project', 'parts', 'test/admin/buckets.spec.ts'];
    const { child, ended } = run(files, { PATH: folder });
    const started = await until(
      'a worker of a test file',
      () => {
        const all = descendantsOf(child.pid!);
        return all.some(({ line }) => line.includes('/test-worker.js')) ? all : undefined;
      },
      90_000,
    );
    child.kill('SIGTERM');
    expect((await ended).code).toBe(130);
    expect(started.filter(({ id }) => isAlive(id))).toEqual([]);
  }, 200_000);

  it('clears what a killed run left', async () => {
    const { child, ended } = run(['--project', 'parts', 'no-such-test']);
    const home = await until('its home', () => homes()[0]);
    await until('PostgreSQL runs', () => existsSync(join(folder, home, 'postgres', 'data', 'postmaster.pid')));
    child.kill('SIGKILL');
    await ended;
    await run(['--project', 'unit', 'no-such-test']).ended;
    expect(homes()).toEqual([]);
    expect(processesOf(join(folder, home))).toEqual([]);
  });
});
