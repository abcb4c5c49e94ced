import { afterEach, expect, it, vi } from 'vitest';
import type { NewOperation } from '#operations/accepting/accept';
import { AcknowledgedOperations } from '#operations/accepting/acknowledged';
import type { Database } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { lostOperationsTotal } from '#platform/metrics/metrics';

const operation = (id: string) => ({ id, tenantId: 't', kind: 'test.work', resourceName: id }) as NewOperation;
const lost = async () => (await lostOperationsTotal.get()).values.reduce((sum, { value }) => sum + value, 0);

/** What it was asked, and what it has; of tenants that are gone it notes nothing. */
let asked: string[][] = [];
let failures = 0;
let acknowledged: AcknowledgedOperations;
const engine = async ({ name }: Statement, [given]: readonly unknown[] = []) => {
  if (failures-- > 0) throw new Error('starting up');
  if (name === 'note_lost_operations')
    return (JSON.parse(given as string) as { id: string }[]).filter(({ id }) => id !== 'of a tenant that is gone');
  asked.push(given as string[]);
  return (given as string[]).filter(id => id !== 'kept').map(id => ({ id }));
};
const start = () => {
  [asked, failures] = [[], 0];
  acknowledged = new AcknowledgedOperations({ engine: engine as Database['engine'] }, 1);
};
afterEach(async () => {
  await acknowledged.close();
  vi.useRealTimers();
});

it('looks until it has been answered once, and counts what was noted', async () => {
  start();
  const before = await lost();
  for (const id of ['kept', 'lost', 'of a tenant that is gone']) acknowledged.add(operation(id));
  failures = 3;
  acknowledged.check();
  await expect.poll(lost).toBe(before + 1);
  expect(asked).toEqual([['kept', 'lost', 'of a tenant that is gone']]);
  acknowledged.check();
  await expect.poll(() => asked).toHaveLength(2);
  expect(asked[1]).toEqual(['kept']);
});

it('asks for nothing that may have been removed since', async () => {
  start();
  vi.useFakeTimers({ toFake: ['Date'] });
  acknowledged.add(operation('old'));
  vi.setSystemTime(Date.now() + 300_000);
  acknowledged.add(operation('kept'));
  vi.setSystemTime(Date.now() + 400_000);
  acknowledged.check();
  await acknowledged.close();
  expect(asked).toEqual([['kept']]);
});
