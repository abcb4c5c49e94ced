import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Backlog } from './backlog.js';

const LIMITS = { atOnce: 2, most: 3, firstMs: 100, lastMs: 400 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function opened() {
  const stop = new AbortController();
  const began: { item: { n: number }; tries: number; end(isDone: boolean): Promise<void> }[] = [];
  const backlog = new Backlog<{ n: number }>(
    (item, tries) =>
      new Promise(resolve => {
        began.push({
          item,
          tries,
          end: async isDone => {
            resolve(isDone);
            await vi.advanceTimersByTimeAsync(0);
          },
        });
      }),
    LIMITS,
    stop.signal,
  );
  return { backlog, began, stop };
}

describe('a backlog', () => {
  it('does what came while the older one of its key was worked on', async () => {
    const { backlog, began } = opened();
    backlog.add('a', { n: 1 });
    backlog.add('a', { n: 2 });
    expect(began).toHaveLength(1);
    await began[0]!.end(true);
    expect(began.map(({ item, tries }) => [item.n, tries])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    await began[1]!.end(true);
    expect(backlog.size).toBe(0);
  });

  it('does some at a time, and has no place for more than it was told', async () => {
    const { backlog, began } = opened();
    expect(['a', 'b', 'c', 'd'].map((key, n) => backlog.add(key, { n }))).toEqual([true, true, true, false]);
    expect(began).toHaveLength(2);
    await began[1]!.end(true);
    expect(began.map(({ item }) => item.n)).toEqual([0, 1, 2]);
  });

  it('tries again, later each time, with the newest', async () => {
    const { backlog, began } = opened();
    backlog.add('a', { n: 1 });
    await began[0]!.end(false);
    backlog.add('a', { n: 2 });
    await vi.advanceTimersByTimeAsync(99);
    expect(began).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(began[1]).toMatchObject({ item: { n: 2 }, tries: 2 });
    await began[1]!.end(false);
    await vi.advanceTimersByTimeAsync(199);
    expect(began).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(began).toHaveLength(3);
  });

  it('has one listener, however often it tries, and no timer after the end', async () => {
    const { backlog, began, stop } = opened();
    backlog.add('a', { n: 1 });
    backlog.add('b', { n: 2 });
    for (let at = 0; at < 20; at += 2) {
      await began[at]!.end(false);
      await began[at + 1]!.end(false);
      await vi.advanceTimersByTimeAsync(LIMITS.lastMs);
    }
    await began[20]!.end(false);
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(1);
    stop.abort();
    await began[21]!.end(false);
    expect(vi.getTimerCount()).toBe(0);
  });
});
