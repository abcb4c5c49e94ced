import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { buildRootLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';
import { GatewayTasks } from './gateway-tasks.js';

describe('what a gateway does without being asked', () => {
  let shutdown: Shutdown;
  let tasks: GatewayTasks;
  beforeEach(() => {
    vi.useFakeTimers();
    shutdown = new Shutdown({ deadlineMs: 5_000, exit: () => {}, log: buildRootLogger({ write: () => {} }) });
    tasks = new GatewayTasks(shutdown);
  });
  afterEach(async () => {
    // For a run that does not end, the stop goes on after a while.
    await Promise.all([shutdown.stop('test'), vi.advanceTimersByTimeAsync(4_000)]);
    vi.useRealTimers();
  });

  it('comes again and again, after errors too, and says how it does', async () => {
    const run = vi.fn(async () => {});
    run.mockRejectedValueOnce(new Error('no'));
    tasks.begin({ name: 'looks', everyMs: 1_000, run });
    await tasks.first('looks');
    expect(tasks.states()).toMatchObject([{ name: 'looks', hasSucceeded: false, error: 'a defect' }]);
    await vi.advanceTimersByTimeAsync(3_100);
    expect(run.mock.calls.length).toBeGreaterThanOrEqual(4);
    expect(tasks.states()).toMatchObject([{ name: 'looks', hasSucceeded: true, error: null }]);
  });

  it('is late when a run does not end', async () => {
    tasks.begin({ name: 'hangs', everyMs: 1_000, run: () => new Promise<void>(() => {}) });
    await vi.advanceTimersByTimeAsync(40_000);
    const [{ silentMs, lateAfterMs, error } = expect.fail()] = tasks.states();
    expect(silentMs).toBeGreaterThan(lateAfterMs);
    expect(error).toContain('did not end');
  });

  it('ends where it was begun: before what stood then, after what came later', async () => {
    const ended: string[] = [];
    shutdown.add('door', () => ended.push('door'));
    const run = async (): Promise<void> => void ended.push('run');
    tasks.begin({ name: 'looks', everyMs: 1_000, run });
    await tasks.first('looks');
    shutdown.add('later', () => vi.advanceTimersByTimeAsync(1_000));
    await shutdown.stop('test');
    expect(ended).toEqual(['run', 'run', 'door']);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ended).toHaveLength(3);
  });

  it('looks seldom while it would be told, and at once when it is', async () => {
    let hear = () => {};
    const told = { isConnected: true, on: (_: string, heard: () => void) => (hear = heard) };
    tasks = new GatewayTasks(shutdown, told);
    const run = vi.fn(async () => 'calm' as const);
    tasks.begin({ name: 'follows', everyMs: 1_000, calm: 5, run });
    await tasks.first('follows');
    await vi.advanceTimersByTimeAsync(3_700);
    expect(run).toHaveBeenCalledTimes(1);
    hear();
    await vi.advanceTimersByTimeAsync(0);
    expect(run).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(run).toHaveBeenCalledTimes(3);
    told.isConnected = false;
    hear();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(run.mock.calls.length).toBeGreaterThanOrEqual(7);
  });

  it('has one name each', () => {
    tasks.begin({ name: 'looks', everyMs: 1_000, run: async () => {} });
    expect(() => tasks.begin({ name: 'looks', everyMs: 1_000, run: async () => {} })).toThrow('named looks');
  });
});
