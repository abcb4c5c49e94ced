import { describe, expect, it, vi } from 'vitest';
import type { PoolConfig } from '#backends/block-backend';
import { LANES, type LaneName } from '#backends/reflink/file-system-calls';
import { PoolAnswers } from '#backends/reflink/pool-answers';

const never = new AbortController().signal;
const pool = (name: string): PoolConfig => ({ name, path: `/${name}`, portals: [], withoutChap: false });
/** The file system is what stands before the dash. */
const mounts = { deviceOf: (path: string) => path.split('-')[0]! };
const open = (times: ConstructorParameters<typeof PoolAnswers>[1] = {}) =>
  new PoolAnswers(50, { oddMs: -1, canaryMs: 50, waitMs: 50, ...times }, mounts);
const call = (name: string, lane: LaneName, image?: string) => ({
  pool: pool(name),
  lane,
  doing: `${lane} it`,
  images: image === undefined ? [] : [image],
});
const seven = async () => 7;

/** Work that is in the kernel until it is told otherwise. */
function hung() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { work: vi.fn(() => promise), answer: resolve };
}

describe('calls of one file system', () => {
  it('hold up none of another, and of their own only those of their lane', async () => {
    const answers = open({ waitMs: 60_000 });
    const { work, answer } = hung();
    const removals = Array.from({ length: 100 }, () => answers.run(call('busy-a', 'remove'), never, work));
    expect(await answers.run(call('busy-b', 'make'), never, seven)).toBe(7);
    expect(await answers.run(call('other', 'remove'), never, seven)).toBe(7);
    expect(work).toHaveBeenCalledTimes(LANES.remove);
    answer();
    await Promise.all(removals);
  });

  it('wait in line for some time only, and come again', async () => {
    const answers = open();
    const { work, answer } = hung();
    const running = Array.from({ length: LANES.make }, () => answers.run(call('busy', 'make'), never, work));
    await expect(answers.run(call('busy', 'make'), never, seven)).rejects.toMatchObject({
      kind: 'aborted',
      retry: 'later',
    });
    answer();
    await Promise.all(running);
    expect(await answers.run(call('busy', 'make'), never, seven)).toBe(7);
  });

  it('that only waited until their time was over are busy, not unanswered, and never begin', async () => {
    const answers = open({ waitMs: 60_000 });
    const { work, answer } = hung();
    const running = Array.from({ length: LANES.short }, () => answers.run(call('busy', 'short'), never, work));
    const stop = new AbortController();
    const second = vi.fn(seven);
    const waiting = answers.run(call('busy', 'short'), stop.signal, second);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted', retry: 'later', resource: undefined });
    answer();
    await Promise.all(running);
    expect(await answers.run(call('busy', 'short'), never, seven)).toBe(7);
    expect(second).not.toHaveBeenCalled();
  });

  it('that have their place and end before they begin, never begin', async () => {
    const answers = open();
    const stop = new AbortController();
    const work = vi.fn(seven);
    const ended = answers.run(call('free', 'short'), stop.signal, work);
    stop.abort();
    await expect(ended).rejects.toMatchObject({ kind: 'aborted' });
    expect(await answers.run(call('free', 'short'), never, seven)).toBe(7);
    expect(work).not.toHaveBeenCalled();
  });

  it('that were given up have the next about their image wait, and may change nothing any more', async () => {
    const answers = open();
    const { work, answer } = hung();
    const stop = new AbortController();
    let left: AbortSignal | undefined;
    const gone = answers.run(call('slow', 'make', 'image'), stop.signal, signal => {
      left = signal;
      return work();
    });
    await vi.waitFor(() => expect(work).toHaveBeenCalled());
    stop.abort();
    await expect(gone).rejects.toMatchObject({ kind: 'timeout', resource: 'pool slow' });
    expect(left?.aborted).toBe(true);
    await expect(answers.run(call('slow', 'remove', 'image'), never, seven)).rejects.toMatchObject({ kind: 'aborted' });
    expect(await answers.run(call('slow', 'remove', 'another'), never, seven)).toBe(7);
    answer();
    await vi.waitFor(async () => expect(await answers.run(call('slow', 'remove', 'image'), never, seven)).toBe(7));
  });
});

describe('a call about several pools', () => {
  const cut = (answers: PoolAnswers, names: string[], work: () => Promise<unknown>, images: string[] = []) =>
    answers.runTogether(names.map(pool), { lane: 'make', doing: 'cut', images }, never, work);

  it('takes one place of a file system, however many of the pools lie in it', async () => {
    const answers = open();
    const names = Array.from({ length: LANES.make + 1 }, (_, n) => `one-${n}`);
    const { work, answer } = hung();
    const cuts = Array.from({ length: LANES.make }, () => cut(answers, names, work));
    await vi.waitFor(() => expect(work).toHaveBeenCalledTimes(LANES.make));
    await expect(cut(answers, names, work)).rejects.toMatchObject({ kind: 'aborted' });
    answer();
    await Promise.all(cuts);
    expect(answers.figures()).toMatchObject({ inFlight: 0 });
  });

  it('never waits for one that waits for it', async () => {
    const answers = open({ waitMs: 60_000 });
    const names = ['one-a', 'other-b'];
    const cuts = Array.from({ length: LANES.make * 4 }, (_, n) =>
      cut(answers, n % 2 ? names : names.toReversed(), async () => {
        await new Promise(resolve => setImmediate(resolve));
        return 7;
      }),
    );
    expect(await Promise.all(cuts)).toEqual(cuts.map(() => 7));
  });

  it('has none begun about any of its images after it was given up, and gives way to such itself', async () => {
    const answers = open();
    const { work, answer } = hung();
    const stop = new AbortController();
    const gone = answers.runTogether(
      [pool('one'), pool('other')],
      { lane: 'make', doing: 'cut', images: ['first', 'second'] },
      stop.signal,
      work,
    );
    await vi.waitFor(() => expect(work).toHaveBeenCalled());
    stop.abort();
    await expect(gone).rejects.toMatchObject({ kind: 'timeout' });
    const removal = () => answers.run(call('other', 'remove', 'second'), never, seven);
    await expect(removal()).rejects.toMatchObject({ kind: 'aborted' });
    await expect(cut(answers, ['one'], seven, ['another', 'first'])).rejects.toMatchObject({ kind: 'aborted' });
    expect(await cut(answers, ['one'], seven, ['another'])).toBe(7);
    answer();
    await vi.waitFor(async () => expect(await removal()).toBe(7));
  });
});

describe('a file system that does not answer', () => {
  it('is looked at by one thread for all that lie in it', async () => {
    const answers = open();
    const { work, answer } = hung();
    const second = vi.fn(seven);
    const looks = [answers.look(pool('dead-a'), work), answers.look(pool('dead-b'), second)];
    for (const look of looks) await expect(look).rejects.toMatchObject({ kind: 'unavailable' });
    await expect(answers.run(call('dead-c', 'short'), never, second)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(second).not.toHaveBeenCalled();
    expect(await answers.look(pool('good'), seven)).toBe(7);
    expect(answers.figures()).toMatchObject({ silent: 1 });
    answer();
    await vi.waitFor(async () => expect(await answers.look(pool('dead-b'), second)).toBe(7));
  });

  it('is none where looks wait in line for longer than one may take', async () => {
    const answers = open({ oddMs: 60_000 });
    const long = hung();
    const running = answers.run(call('slow', 'make'), never, long.work);
    const begin = performance.now();
    const looks = Array.from({ length: 4 }, (_, n) =>
      answers.look(pool(`slow-${n}`), () => new Promise<number>(resolve => setTimeout(resolve, 25, n))),
    );
    expect(await Promise.all(looks)).toEqual([0, 1, 2, 3]);
    expect(performance.now() - begin).toBeGreaterThan(answers.answerMs);
    expect(answers.figures()).toMatchObject({ silent: 0, inFlight: 1 });
    long.answer();
    await running;
  });

  it('is found by its canary where it answers looks, and lets go of who waits for it', async () => {
    const answers = open({ waitMs: 60_000 });
    const { work, answer } = hung();
    const inKernel = Array.from({ length: LANES.make + 3 }, () => answers.run(call('frozen', 'make'), never, work));
    const ends = Promise.allSettled(inKernel);
    await vi.waitFor(() => expect(work).toHaveBeenCalledTimes(LANES.make));
    expect(await answers.look(pool('frozen'), seven, work)).toBe(7);
    for (const end of await ends)
      expect(end).toMatchObject({ reason: { kind: 'timeout', message: expect.stringMatching(/do not return/) } });
    expect(work).toHaveBeenCalledTimes(LANES.make + 1);
    await expect(answers.look(pool('frozen'), seven, work)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/a small write not within .*make it not for/),
    });
    expect(answers.figures()).toMatchObject({ silent: 1, inFlight: LANES.make, oldest: { doing: 'make it' } });
    answer();
    await vi.waitFor(async () => expect(await answers.look(pool('frozen'), seven, work)).toBe(7));
    expect(answers.figures()).toMatchObject({ silent: 0, inFlight: 0, oldest: undefined });
  });

  it('is none whose calls are long and whose canary comes back, were it with an error', async () => {
    const answers = open();
    const { work, answer } = hung();
    const long = answers.run(call('large', 'make'), never, work);
    await vi.waitFor(() => expect(work).toHaveBeenCalled());
    const canary = vi.fn(() => Promise.reject(new Error('ENOSPC')));
    expect(await answers.look(pool('large'), seven, canary)).toBe(7);
    expect(canary).toHaveBeenCalledTimes(1);
    await new Promise(resolve => setImmediate(resolve));
    expect(answers.figures()).toMatchObject({ silent: 0 });
    answer();
    await long;
  });
});
