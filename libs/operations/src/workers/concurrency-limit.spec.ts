import { expect, it } from 'vitest';
import { ConcurrencyLimit } from '#operations/workers/concurrency-limit';

const work = () => Promise.withResolvers<void>();

it('is full with so many, and lets the next in when one has ended', async () => {
  const limit = new ConcurrencyLimit(2);
  const [one, two, three] = [work(), work(), work()];
  limit.during(one.promise);
  expect(limit.full).toBe(false);
  limit.during(two.promise);
  expect(limit.full).toBe(true);
  let entered = false;
  const next = limit.free().then(() => {
    entered = true;
    limit.during(three.promise);
  });
  await Promise.resolve();
  expect(entered).toBe(false);
  two.resolve();
  await next;
  expect(limit.full).toBe(true);
});

it('makes nobody wait once it is open', async () => {
  const limit = new ConcurrencyLimit(1);
  limit.during(work().promise);
  const next = limit.free();
  limit.open();
  await next;
  expect(limit.full).toBe(false);
});
