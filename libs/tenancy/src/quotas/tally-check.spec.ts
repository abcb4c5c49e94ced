import { expect, it } from 'vitest';
import type { Database } from '#platform/database/database';
import { TallyCheck } from '#tenancy/quotas/tally-check';

it('goes on behind a tenant that cannot be counted, and says so', async () => {
  const counted: unknown[] = [];
  const engine = async (_: unknown, [tenantId]: readonly unknown[] = []) => {
    if (tenantId === undefined) return ['a', 'b', 'c'].map(id => ({ tenantId: id }));
    counted.push(tenantId);
    if (tenantId === 'a') throw new Error('too slow');
    return [];
  };
  const check = new TallyCheck({ engine: engine as Database['engine'] });
  const { signal } = new AbortController();
  await expect(check.run(signal)).rejects.toThrow('too slow');
  expect(counted).toEqual(['a', 'b', 'c']);
  await expect(check.run(signal)).rejects.toThrow('too slow');
});
