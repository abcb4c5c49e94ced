import { expect, it } from 'vitest';
import type { Database } from '#platform/database/database';
import { TallyCheck } from '#tenancy/quotas/tally-check';

const BOUNDS = { portion: 5, rows: 12, steps: 20, againMs: 0 };

/** Of a tenant there are so many rows, of which a step looks at a portion. */
function checkOf(tenants: Record<string, number>) {
  const stepped: string[] = [];
  const left = new Map(Object.entries(tenants));
  const engine = async (_: unknown, [tenantId, kind, portion]: readonly unknown[] = []) => {
    if (portion === undefined) return [...left.keys()].map(id => ({ tenantId: id, kind: 'volume' }));
    stepped.push(tenantId as string);
    if (tenantId === 'broken') throw new Error('too slow');
    const looked = Math.min(left.get(tenantId as string)!, portion as number);
    left.set(tenantId as string, left.get(tenantId as string)! - looked);
    return [{ progress: looked < (portion as number) ? 'done' : 'portion', looked, kind }];
  };
  return { check: new TallyCheck({ engine: engine as Database['engine'] }, BOUNDS), stepped };
}
const { signal } = new AbortController();

it('goes on behind a tenant that cannot be counted, and says so', async () => {
  const { check, stepped } = checkOf({ broken: 1, b: 1, c: 1 });
  await expect(check.run(signal)).rejects.toThrow('too slow');
  expect(stepped).toEqual(['broken', 'b', 'c']);
  await expect(check.run(signal)).rejects.toThrow('too slow');
});

it('reads no more rows in a run than its bound and a portion', async () => {
  const { check, stepped } = checkOf({ a: 1_000, b: 1 });
  await check.run(signal);
  expect(stepped).toEqual(['a', 'a', 'a']);
});

it('is calm when nothing is to be compared', async () => {
  expect(await checkOf({}).check.run(signal)).toBe('calm');
});
