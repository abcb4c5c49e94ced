import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Outflow } from '#cbt/outflow';
import type { StreamEnd } from '#cbt/stream-end';

const STALL_MS = 1_000;
const MESSAGE = Buffer.alloc(64 * 1024);
/** As many of them are under way at most. */
const ROOM = 4;

let controller: AbortController;
let heard: number;
let taken: (() => void)[];
let out: Outflow;
beforeEach(() => {
  vi.useFakeTimers();
  controller = new AbortController();
  heard = 0;
  taken = [];
  out = new Outflow(
    (_, done) => taken.push(done),
    STALL_MS,
    controller.signal,
    () => heard,
  );
});
afterEach(() => {
  vi.useRealTimers();
});

/** Fills the way; gives the wait of the last message, with when and how it ended. */
function full() {
  for (let n = 1; n < ROOM; n++) expect(out.send(MESSAGE)).toBeUndefined();
  const outcome: { after?: number; error?: StreamEnd } = {};
  const began = performance.now();
  out.send(MESSAGE)!.then(
    () => {
      outcome.after = performance.now() - began;
    },
    error => Object.assign(outcome, { after: performance.now() - began, error }),
  );
  return outcome;
}

describe('what is on its way to a caller', () => {
  it('has room again when something is taken', async () => {
    const outcome = full();
    await vi.advanceTimersByTimeAsync(300);
    expect(outcome.after).toBeUndefined();
    taken.shift()!();
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome).toEqual({ after: 300 });
  });

  it('ends when nothing is heard of the caller for so long, not before and not much later', async () => {
    const outcome = full();
    await vi.advanceTimersByTimeAsync(600);
    heard++;
    await vi.advanceTimersByTimeAsync(STALL_MS - 1);
    expect(outcome.after).toBeUndefined();
    await vi.advanceTimersByTimeAsync(STALL_MS);
    expect(outcome.after).toBeLessThanOrEqual(600 + 1.5 * STALL_MS);
    expect(outcome.error).toMatchObject({ reason: 'stalled', message: expect.stringContaining('nor heard') });
  });

  it('ends when nothing is taken for thirty times that, though the caller is heard of', async () => {
    const outcome = full();
    for (let n = 0; n < 2 * 29; n++) {
      heard++;
      await vi.advanceTimersByTimeAsync(STALL_MS / 2);
    }
    expect(outcome.after).toBeUndefined();
    for (let n = 0; n < 4; n++) {
      heard++;
      await vi.advanceTimersByTimeAsync(STALL_MS / 2);
    }
    expect(outcome.error?.message).toMatch(/^nothing was read for 30000 ms$/);
  });

  it('does not count the time in which nobody waited', async () => {
    const first = full();
    taken.shift()!();
    await vi.advanceTimersByTimeAsync(40 * STALL_MS);
    expect(first.error).toBeUndefined();
    const began = performance.now();
    const second = out.send(MESSAGE)!.catch(() => performance.now() - began);
    await vi.advanceTimersByTimeAsync(2 * STALL_MS);
    expect(await second).toBeGreaterThanOrEqual(STALL_MS);
  });

  it('ends with the reason of its signal, before and while it waits', async () => {
    const outcome = full();
    controller.abort('gone');
    await vi.advanceTimersByTimeAsync(0);
    expect(outcome.error).toBe('gone');
    await expect(out.send(MESSAGE)).rejects.toBe('gone');
  });

  it('leaves no timer behind', async () => {
    full();
    expect(vi.getTimerCount()).toBe(1);
    for (const done of taken) done();
    await out.flushed();
    out.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
