import { describe, expect, it } from 'vitest';
import { Lane } from '#backends/lane';

const never = new AbortController().signal;
const late = () => new Error('too late');

/** Work that ends when it is told to. */
function work() {
  let begun = false;
  const { promise, resolve } = Promise.withResolvers<void>();
  const run = () => {
    begun = true;
    return promise;
  };
  return { run, end: resolve, hasBegun: () => begun };
}
const settled = () => new Promise(resolve => setImmediate(resolve));

describe('a lane of file calls', () => {
  it('runs so much at once and no more, in the order of the calls', async () => {
    const long = new Lane(2);
    const jobs = [work(), work(), work(), work()];
    const ends = jobs.map(job => long.run(job.run, never, late));
    await settled();
    expect(jobs.map(job => job.hasBegun())).toEqual([true, true, false, false]);
    jobs[1]!.end();
    await settled();
    expect(jobs.map(job => job.hasBegun())).toEqual([true, true, true, false]);
    for (const job of jobs) job.end();
    await Promise.all(ends);
  });

  it('gives the place of work that failed to the next', async () => {
    const long = new Lane(1);
    await expect(long.run(() => Promise.reject(new Error('no')), never, late)).rejects.toThrow('no');
    expect(await long.run(async () => 7, never, late)).toBe(7);
  });

  it('lets go of who cannot wait, and of nobody else', async () => {
    const long = new Lane(1);
    const [first, second] = [work(), work()];
    const abort = new AbortController();
    const running = long.run(first.run, never, late);
    const gone = long.run(async () => 'never', abort.signal, late);
    const waiting = long.run(second.run, never, late);
    abort.abort();
    await expect(gone).rejects.toThrow('too late');
    await expect(long.run(async () => 'never', abort.signal, late)).rejects.toThrow('too late');
    first.end();
    await settled();
    expect(second.hasBegun()).toBe(true);
    second.end();
    await Promise.all([running, waiting]);
  });
});
