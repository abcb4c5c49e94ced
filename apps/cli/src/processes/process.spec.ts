import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { HOME_MARK } from '#platform/config/config';
import { endProcess, identify, isAlive, type ProcessId, processesOf, signal } from './process.js';

const started: ProcessId[] = [];
afterEach(async () => {
  for (const id of started.splice(0)) await endProcess(id, 'SIGKILL', 5_000);
});

async function run(script: string, env: Record<string, string> = {}): Promise<ProcessId> {
  const child = spawn('/bin/sh', ['-c', script], {
    env: { PATH: '/bin:/usr/bin', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  const id = identify(child.pid as number) as ProcessId;
  started.push(id);
  return id;
}

describe('a process by pid and start time', () => {
  it('is not another process that has its pid now', async () => {
    const id = await run('echo up; read line');
    expect(isAlive(id)).toBe(true);
    const stranger = { ...id, startTime: `${id.startTime}0` };
    expect(isAlive(stranger)).toBe(false);
    expect(signal(stranger, 'SIGKILL')).toBe(false);
    expect(isAlive(id)).toBe(true);
  });

  it('is killed when it ignores the polite signal', async () => {
    const id = await run('trap "" TERM; echo up; read line');
    await endProcess(id, 'SIGTERM', 100);
    expect(isAlive(id)).toBe(false);
  });

  it('ends though it was stopped', async () => {
    const id = await run('echo up; read line');
    signal(id, 'SIGSTOP');
    const begin = Date.now();
    await endProcess(id, 'SIGTERM', 5_000);
    expect(isAlive(id)).toBe(false);
    expect(Date.now() - begin).toBeLessThan(4_000);
  });

  it('is found by the home it was started for, and by no other', async () => {
    const home = `/home/of/${process.pid}`;
    const id = await run('echo up; read line', { [HOME_MARK]: home });
    expect(processesOf(home)).toContainEqual(id);
    expect(processesOf(`${home}2`)).toEqual([]);
    expect(processesOf(home.slice(0, -1))).toEqual([]);
  });
});
