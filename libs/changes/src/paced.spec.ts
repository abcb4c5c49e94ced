import { expect, it } from 'vitest';
import { paced } from '#changes/paced';
import type { Database } from '#platform/database/database';

it('lets in so many at once, in their order, after failures too', async () => {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  let inside = 0;
  const database = paced({ withTenant: (_: string, work: () => unknown) => work() } as unknown as Database, 2);
  const all = Array.from({ length: 5 }, (_, n) =>
    database.withTenant('tenant', async () => {
      begun.push(n);
      expect(++inside).toBeLessThanOrEqual(2);
      await new Promise<void>(resolve => ends.push(resolve));
      inside--;
      if (n === 1) throw new Error('failed');
      return n;
    }),
  );
  const settled = Promise.allSettled(all);
  expect(begun).toEqual([0, 1]);
  for (let n = 0; n < 5; n++) {
    ends[n]!();
    await Promise.allSettled([all[n]]);
  }
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', ...Array(3).fill('fulfilled')]);
  // All places are free again.
  const after = [5, 6].map(n => database.withTenant('tenant', async () => begun.push(n)));
  expect(begun.slice(5)).toEqual([5, 6]);
  await Promise.all(after);
});
