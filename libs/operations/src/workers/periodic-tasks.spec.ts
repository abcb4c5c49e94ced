import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { type PeriodicOptions, PeriodicTasks } from '#operations/workers/periodic-tasks';
import { StorageError } from '#platform/errors';

vi.mock('#platform/logging/log', async original => ({
  ...(await original<typeof import('#platform/logging/log')>()),
  createLogger: () => log,
}));
const log = vi.hoisted(() => ({ warn: vi.fn(), info: vi.fn() }));

beforeEach(() => {
  vi.useFakeTimers();
  log.warn.mockClear();
  log.info.mockClear();
});
afterEach(() => {
  vi.useRealTimers();
});

const HOUR = 3_600_000;
/** What the task of the appliance is told by the database. */
let claim = { ours: true, held: false };
const engine = vi.fn(async (_statement: { name: string }, _params: readonly unknown[] = []) => [claim]);
const asked = (statement: string) =>
  engine.mock.calls.filter(([{ name }]) => name === statement).map(([, params]) => params);
beforeEach(() => {
  engine.mockClear();
  claim = { ours: true, held: false };
});

const task = (name: string, run: PeriodicTask['run'], more: Partial<PeriodicTask> = {}): PeriodicTask => ({
  name,
  everyMs: 10_000,
  scope: 'worker',
  run,
  ...more,
});
function started(tasks: PeriodicTask[], options: Partial<PeriodicOptions> = {}): PeriodicTasks {
  const database = { engine } as unknown as PeriodicOptions['database'];
  const made = new PeriodicTasks(tasks, {
    database,
    workerId: 'me',
    leastMs: 2_000,
    registered: async () => {},
    ...options,
  });
  made.start();
  return made;
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const never = () => new Promise<void>(() => {});
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('a task', () => {
  it('runs at once, and then no later than its time after each end', async () => {
    const run = vi.fn(async () => {});
    started([task('quick', run)]);
    await pass(0);
    expect(run).toHaveBeenCalledTimes(1);
    await pass(7_499);
    expect(run).toHaveBeenCalledTimes(1);
    await pass(2_501);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('comes no more often than anything may', async () => {
    const run = vi.fn(async () => {});
    started([task('eager', run, { everyMs: 0 })], { leastMs: HOUR });
    await pass(HOUR * 0.74);
    expect(run).toHaveBeenCalledTimes(1);
    await pass(HOUR * 0.26);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('may wait with its first run, too', async () => {
    const run = vi.fn(async () => {});
    started([task('patient', run, { waitsFirst: true })]);
    await pass(7_499);
    expect(run).not.toHaveBeenCalled();
    await pass(2_501);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('waits for no other, and is not begun beside itself', async () => {
    const [hanging, other] = [vi.fn(never), vi.fn(async () => {})];
    started([task('hanging', hanging), task('other', other)]);
    await pass(100_000);
    expect(hanging).toHaveBeenCalledTimes(1);
    expect(other.mock.calls.length).toBeGreaterThanOrEqual(10);
  });

  it('that has more to do goes on soon', async () => {
    const left: ('more' | undefined)[] = ['more', 'more', undefined];
    const run = vi.fn(async () => left.shift());
    started([task('long', run, { everyMs: HOUR })]);
    await pass(10_000);
    expect(run).toHaveBeenCalledTimes(3);
  });

  it('that found nothing waits for longer, until it is woken', async () => {
    const run = vi.fn(async () => 'calm' as const);
    const tasks = started([task('calm', run, { calm: 30 })]);
    await pass(220_000);
    expect(run).toHaveBeenCalledTimes(1);
    tasks.wake('calm');
    await pass(0);
    expect(run).toHaveBeenCalledTimes(2);
    // No more often than else.
    tasks.wake('calm');
    await pass(7_400);
    expect(run).toHaveBeenCalledTimes(2);
    await pass(2_600);
    expect(run).toHaveBeenCalledTimes(3);
    await pass(300_000);
    expect(run).toHaveBeenCalledTimes(4);
  });

  it('that is woken while it runs comes again after its time', async () => {
    let end = () => {};
    const run = vi.fn(() => new Promise<'calm'>(resolve => (end = () => resolve('calm'))));
    const tasks = started([task('calm', run, { calm: 30 })]);
    await pass(0);
    tasks.wake('calm');
    end();
    await pass(10_000);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('waits with its first run for that of another, and with no other', async () => {
    let end = () => {};
    const first = vi.fn(
      () =>
        new Promise<void>((_, reject) => {
          end = () => reject(new Error('whatever was seen'));
        }),
    );
    const second = vi.fn(async () => {});
    started([task('second', second, { after: 'first' }), task('first', first)]);
    await pass(60_000);
    expect(second).not.toHaveBeenCalled();
    end();
    await pass(0);
    expect(second).toHaveBeenCalledTimes(1);
    await pass(60_000);
    expect(first).toHaveBeenCalledTimes(2);
    expect(second.mock.calls.length).toBeGreaterThan(5);
  });

  it('has a name of its own, and comes after one that begins at once', () => {
    const run = async () => {};
    expect(() => started([task('a', run), task('a', run)])).toThrow('one name');
    expect(() => started([task('a', run, { after: 'b' })])).toThrow('a comes after b');
    expect(() => started([task('a', run, { after: 'b' }), task('b', run, { after: 'a' })])).toThrow('comes after');
  });
});

describe('one that fails', () => {
  it('is logged once for each error, tried again soon, and said to work again', async () => {
    const errors = [new Error('one'), new Error('one'), new Error('two'), undefined, new Error('two')];
    const run = vi.fn(async () => {
      const error = errors.shift();
      if (error) throw error;
    });
    const tasks = started([task('failing', run, { everyMs: HOUR })]);
    await pass(0);
    expect(log.warn).toHaveBeenCalledTimes(1);
    await pass(2_000);
    expect([run.mock.calls.length, log.warn.mock.calls.length]).toEqual([2, 1]);
    await pass(2_000);
    expect([run.mock.calls.length, log.warn.mock.calls.length]).toEqual([3, 2]);
    expect(tasks.hasSucceeded('failing')).toBe(false);
    await pass(2_000);
    expect(log.info).toHaveBeenCalledTimes(1);
    expect(tasks.hasSucceeded('failing')).toBe(true);
    await pass(HOUR);
    expect(log.warn).toHaveBeenCalledTimes(3);
  });

  it('says what it is to people, and nothing of a driver’s own words', async () => {
    const errors: unknown[] = [
      new StorageError('unavailable', 'pool a hangs'),
      Object.assign(new Error('connect 10.0.0.7:5432'), { code: 'ECONNREFUSED' }),
      new Error('password=x'),
    ];
    const tasks = started([
      task('failing', async () => {
        throw errors.shift();
      }),
    ]);
    const seen: unknown[] = [];
    for (let n = 0; n < 3; n++) {
      await pass(n === 0 ? 0 : 2_000);
      seen.push(tasks.states()[0]!.error);
    }
    expect(seen).toEqual(['pool a hangs', 'error ECONNREFUSED', 'a defect']);
  });

  it('by its bound is aborted and reported, however it takes that', async () => {
    let aborted = 0;
    const run = vi.fn((signal: AbortSignal) => untilAborted(signal).then(() => void aborted++));
    const deaf = vi.fn(never);
    const tasks = started([task('slow', run, { boundMs: 30_000 }), task('deaf', deaf, { boundMs: 30_000 })]);
    await pass(29_999);
    expect([aborted, log.warn.mock.calls.length]).toEqual([0, 0]);
    await pass(1);
    expect([aborted, log.warn.mock.calls.length]).toEqual([1, 2]);
    expect(tasks.states().map(({ error }) => error)).toEqual(Array(2).fill('a run did not end within 30 s'));
    await pass(2_000);
    expect([run.mock.calls.length, deaf.mock.calls.length]).toEqual([2, 1]);
  });
});

describe('how a task does', () => {
  it('is how long it has been silent, and when that is too long', async () => {
    let fails = false;
    const run = async () => {
      await new Promise(resolve => setTimeout(resolve, 25));
      if (fails) throw new Error('no');
    };
    const tasks = started([task('slow', run, { boundMs: 60_000 })]);
    await pass(10);
    const state = () => tasks.states()[0]!;
    expect(state()).toMatchObject({ name: 'slow', silentMs: 10, hasSucceeded: false, lateAfterMs: 90_000 });
    await pass(15);
    expect(state()).toMatchObject({ silentMs: 0, hasSucceeded: true, durationMs: 25, error: null });
    fails = true;
    await pass(100_000);
    expect(state()).toMatchObject({ silentMs: 100_000, durationMs: 25, error: 'a defect' });
  });

  it('is not waited for beyond some patience', async () => {
    const tasks = started([task('deaf', never)]);
    await pass(5_000);
    expect([tasks.hasSucceeded('deaf'), tasks.hasSucceeded('deaf', 5_000)]).toEqual([false, false]);
    await pass(1);
    expect([tasks.hasSucceeded('deaf'), tasks.hasSucceeded('deaf', 5_000)]).toEqual([false, true]);
  });
});

describe('stopping', () => {
  it('aborts what runs, waits for its end, and begins nothing more', async () => {
    let end = () => {};
    let told = false;
    const slow = vi.fn(
      (signal: AbortSignal) =>
        new Promise<void>((_, reject) => {
          signal.addEventListener('abort', () => {
            told = true;
          });
          end = () => reject(signal.reason);
        }),
    );
    const [other, late] = [vi.fn(async () => {}), vi.fn(async () => {})];
    const tasks = started([task('slow', slow), task('other', other), task('late', late, { after: 'slow' })]);
    await pass(0);
    let stopped = false;
    const stopping = tasks.stop().then(() => {
      stopped = true;
    });
    await pass(60_000);
    expect([told, stopped]).toEqual([true, false]);
    end();
    await stopping;
    await pass(HOUR);
    expect([slow, other, late].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
    expect(log.warn).not.toHaveBeenCalled();
  });
});

describe('of the whole appliance', () => {
  const shared = (run: PeriodicTask['run'], everyMs = HOUR) => task('shared', run, { scope: 'appliance', everyMs });

  it('is claimed, and given back with what became of it', async () => {
    const tasks = started([shared(async () => {})]);
    await pass(0);
    expect(asked('task_keep_only')).toEqual([[['shared'], []]]);
    expect(asked('task_claim')).toMatchObject([['shared', 'me', 0, 3 * HOUR + 300_000, expect.anything()]]);
    expect(asked('task_end')).toEqual([['shared', 'me', 0, null]]);
    expect(tasks.states()).toEqual([]);
    await pass(HOUR);
    expect(asked('task_claim')[1]?.[2]).toBe(HOUR * 0.7);
  });

  it('is left to who does it, and looked at again soon: that one may die', async () => {
    const run = vi.fn(async () => {});
    claim = { ours: false, held: true };
    started([shared(run)]);
    await pass(10_000);
    expect(asked('task_claim').length).toBeGreaterThanOrEqual(3);
    expect(run).not.toHaveBeenCalled();
    claim = { ours: true, held: false };
    await pass(5_000);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('is put off when another worker has just done it', async () => {
    const run = vi.fn(async () => {});
    claim = { ours: false, held: false };
    started([shared(run)]);
    await pass(HOUR * 0.74);
    expect(asked('task_claim')).toHaveLength(1);
    expect(run).not.toHaveBeenCalled();
  });

  it('is given back without a success when it fails, overruns or is stopped', async () => {
    let mode = 'works';
    const run = async (signal: AbortSignal) => {
      if (mode === 'works') return;
      if (mode === 'fails') throw new StorageError('unavailable', 'not now');
      await untilAborted(signal);
    };
    const tasks = started([{ ...shared(run), boundMs: 30_000 }]);
    await pass(0);
    const untilEnded = async (runs: number) => {
      while (asked('task_end').length < runs) await pass(1_000);
    };
    mode = 'fails';
    await untilEnded(2);
    mode = 'hangs';
    await untilEnded(3);
    await pass(2_000);
    log.warn.mockClear();
    engine.mockRejectedValueOnce(new Error('the database is away'));
    await tasks.stop();
    expect(log.warn).not.toHaveBeenCalled();
    expect(asked('task_end')).toEqual([
      ['shared', 'me', 0, null],
      ['shared', 'me', null, 'not now'],
      ['shared', 'me', null, 'a run did not end within 30 s'],
      ['shared', 'me', null, 'a run did not end within 30 s'],
    ]);
  });

  it('is not begun when the worker stops while it asks', async () => {
    let answer = () => {};
    const run = vi.fn(async () => {});
    const tasks = started([shared(run)]);
    await pass(0);
    engine.mockImplementationOnce(
      () =>
        new Promise(resolve => {
          answer = () => resolve([claim]);
        }),
    );
    await pass(HOUR);
    const stopped = tasks.stop();
    answer();
    await stopped;
    expect(run).toHaveBeenCalledTimes(1);
    expect(asked('task_end')).toHaveLength(2);
  });

  it('waits until its worker is in the list, and outlives a database that is away', async () => {
    let register = () => {};
    const registered = vi.fn(() => new Promise<void>(resolve => (register = resolve)));
    const run = vi.fn(async () => {});
    started([shared(run)], { registered });
    await pass(60_000);
    expect(engine).not.toHaveBeenCalled();
    engine.mockRejectedValueOnce(new StorageError('unavailable', 'the database is away'));
    register();
    await pass(0);
    expect(log.warn).toHaveBeenCalledTimes(1);
    await pass(2_000);
    register();
    await pass(0);
    expect(run).toHaveBeenCalledTimes(1);
  });
});
