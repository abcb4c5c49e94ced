import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { listensAt } from './listeners.js';
import { isAlive, type ProcessId } from './process.js';
import { type ProcessSpec, pauseAfter, StartError, SupervisedProcess } from './supervised-process.js';

const FAST = { firstMs: 20, maxMs: 80 };
let folder: string;
let running: SupervisedProcess[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'supervised-'));
  running = [];
});
afterEach(async () => {
  for (const supervised of running) await supervised.stop();
  rmSync(folder, { recursive: true, force: true });
});

const path = (name: string): string => join(folder, name);

/** A shell script that is ready once it wrote the file `ready`. */
function supervise(script: string, overrides: Partial<ProcessSpec> = {}): SupervisedProcess {
  const supervised = new SupervisedProcess(
    {
      name: 'script',
      command: '/bin/sh',
      args: ['-c', script],
      env: { PATH: '/bin:/usr/bin' },
      cwd: folder,
      logFile: path('log'),
      stopSignal: 'SIGTERM',
      stopGraceMs: 2_000,
      readyMs: 5_000,
      ready: async () => existsSync(path('ready')),
      beforeStart: async () => rmSync(path('ready'), { force: true }),
      ...overrides,
    },
    () => {},
    FAST,
  );
  running.push(supervised);
  return supervised;
}

const FOREVER = 'echo run >> runs; : > ready; exec sleep 1000';

describe('a supervised process', () => {
  it('is started again after it was killed, and counts it', async () => {
    const supervised = supervise(FOREVER);
    await supervised.start();
    const first = supervised.id as ProcessId;
    process.kill(first.pid, 'SIGKILL');
    await vi.waitFor(() => expect(supervised).toMatchObject({ state: 'running', restarts: 1 }), 5_000);
    expect(supervised.id?.pid).not.toBe(first.pid);
    expect(readFileSync(path('runs'), 'utf8')).toBe('run\nrun\n');
  });

  it('waits longer after each fall', async () => {
    // Runs once well, then falls at once until it is allowed to run again.
    const supervised = supervise('date +%s%N >> times; if [ -f fall ]; then exit 1; fi; : > ready; exec sleep 1000');
    await supervised.start();
    writeFileSync(path('fall'), '');
    process.kill((supervised.id as ProcessId).pid, 'SIGKILL');
    const times = (): number[] => readFileSync(path('times'), 'utf8').trim().split('\n').map(Number);
    await vi.waitFor(() => expect(times().length).toBeGreaterThanOrEqual(6), 5_000);
    rmSync(path('fall'));
    const pauses = times()
      .slice(1)
      .map((time, index) => (time - (times()[index] as number)) / 1e6);
    // Pauses 1 and 2 follow 20 and 40 ms; from 80 ms on they grow no more.
    expect(pauses[2]).toBeGreaterThanOrEqual(40);
    expect(pauses[3]).toBeGreaterThanOrEqual(80);
    await vi.waitFor(() => expect(supervised.state).toBe('running'), 5_000);
  });

  it('waits as long as at first when it was ready for a while, however often it is killed', () => {
    const backOff = { firstMs: 250, maxMs: 30_000 };
    const pauses = (readyMs: number) => {
      const found = [pauseAfter(0, readyMs, backOff)];
      while (found.length < 9) found.push(pauseAfter(found.at(-1)!, readyMs, backOff));
      return found;
    };
    expect(pauses(3_000)).toEqual(Array(9).fill(250));
    expect(pauses(500)).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it('is never started again after exit code 78', async () => {
    const supervised = supervise(`${'if [ -f wrong ]; then exit 78; fi; '}${FOREVER}`);
    await supervised.start();
    writeFileSync(path('wrong'), '');
    process.kill((supervised.id as ProcessId).pid, 'SIGKILL');
    await vi.waitFor(() => expect(supervised.state).toBe('failed'), 5_000);
    expect(supervised.reason).toContain('code 78');
    expect(supervised.restarts).toBe(1);
  });

  it('says what its log says when it cannot start, at once for exit code 78', async () => {
    const supervised = supervise('echo run >> runs; echo "port is missing" >&2; exit 78');
    const failure = await supervised.start().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StartError);
    expect((failure as Error).message).toContain('port is missing');
    expect(readFileSync(path('runs'), 'utf8')).toBe('run\n');
  });

  it('whose port somebody else has fails at once, and names both', async () => {
    const stranger = createServer().listen(0, '127.0.0.1');
    try {
      await once(stranger, 'listening');
      const { port } = stranger.address() as AddressInfo;
      const supervised = supervise('echo run >> runs; exec sleep 1000', { ports: [port], readyMs: 60_000 });
      const failure = await supervised.start().catch((error: unknown) => error);
      expect(failure).toMatchObject({ takenPort: port });
      expect((failure as Error).message).toMatch(`script: port ${port} is taken by `);
      expect((failure as Error).message).toContain(`pid ${process.pid}`);
      expect(readFileSync(path('runs'), 'utf8')).toBe('run\n');
      const ending = supervise('exit 78', { ports: [port] });
      await expect(ending.start()).rejects.toMatchObject({ takenPort: port });
      expect(listensAt(process.pid, port)).toBe(true);
      expect(listensAt(process.ppid, port)).toBe(false);
    } finally {
      stranger.close();
    }
  });

  it('that refuses its configuration is quoted with that alone', async () => {
    const log = `echo '{"level":"info","msg":"starting"}'`;
    const refused =
      'echo "trivet: configuration: TRIVET_A: wrong" >&2; echo "trivet: configuration: TRIVET_B: too" >&2';
    const supervised = supervise(`${log}; ${refused}; ${log}; exit 78`);
    await expect(supervised.start()).rejects.toMatchObject({
      exitCode: 78,
      message: `script: ended with code 78: TRIVET_A: wrong\n    TRIVET_B: too; log: ${path('log')}`,
    });
  });

  it('tries a first start three times', async () => {
    const supervised = supervise('echo run >> runs; exit 1');
    await expect(supervised.start()).rejects.toThrow('code 1');
    expect(readFileSync(path('runs'), 'utf8')).toBe('run\nrun\nrun\n');
    expect(supervised.state).toBe('failed');
  });

  it('has failed when it is not ready in time, and is not left behind', async () => {
    const supervised = supervise('echo $$ > pid; exec sleep 1000', { readyMs: 100 });
    await expect(supervised.start()).rejects.toThrow('not ready after 0.1 s');
    expect(existsSync(`/proc/${readFileSync(path('pid'), 'utf8').trim()}`)).toBe(false);
  });

  it('names a program that does not exist', async () => {
    const supervised = supervise('', { command: '/no/such/program' });
    await expect(supervised.start()).rejects.toThrow('cannot start /no/such/program (ENOENT)');
  });

  it('stays down after stop, though it was about to be started again', async () => {
    const supervised = supervise(FOREVER);
    await supervised.start();
    const id = supervised.id as ProcessId;
    process.kill(id.pid, 'SIGKILL');
    await vi.waitFor(() => expect(supervised.state).toBe('waiting'), { timeout: 5_000, interval: 1 });
    await supervised.stop();
    expect(supervised.state).toBe('stopped');
    expect(isAlive(id)).toBe(false);
    expect(readFileSync(path('runs'), 'utf8')).toBe('run\n');
  });

  it('can be stopped while it starts', async () => {
    const supervised = supervise('echo $$ > pid; exec sleep 1000');
    const start = supervised.start();
    start.catch(() => {});
    await vi.waitFor(() => expect(existsSync(path('pid'))).toBe(true), 5_000);
    await supervised.stop();
    await expect(start).rejects.toThrow(StartError);
    expect(existsSync(`/proc/${readFileSync(path('pid'), 'utf8').trim()}`)).toBe(false);
  });
});
