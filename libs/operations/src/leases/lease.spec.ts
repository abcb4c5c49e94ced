import { afterEach, expect, it, vi } from 'vitest';
import { LeaseManager } from '#operations/leases/lease';

afterEach(() => vi.useRealTimers());

it('renews a lease that was claimed while a renewal of others was under way', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const renewals: { ids: string[]; answer(): void }[] = [];
  const engine = async ({ name }: { name: string }, params: [unknown, unknown, string[]]) => {
    if (name.endsWith('claim')) return (params as unknown as [string[]])[0].map(id => ({ id, fence: '1' }));
    const [, , ids] = params;
    await new Promise<void>(answer => renewals.push({ ids, answer }));
    return ids.map(id => ({ id, fence: '1', cancelled: false, renewed: true }));
  };
  const manager = new LeaseManager({ engine } as never, 'worker', 1_000, ['test.work'], () => {});
  await manager.claim('first');
  void manager.renew();
  const second = (await manager.claim('second'))!;
  vi.advanceTimersByTime(600);
  const ensured = manager.ensure(second, 600);
  renewals[0]!.answer();
  await vi.waitFor(() => expect(renewals).toHaveLength(2));
  renewals[1]!.answer();
  await ensured;
  expect(renewals.map(({ ids }) => ids)).toEqual([['first'], ['first', 'second']]);
  expect(second.remainingMs()).toBeGreaterThanOrEqual(600);
});

it.each([
  ['tries what was locked once more', ['locked'], 2],
  ['asks once when nothing was locked', [], 1],
])('handing back %s', async (_, left, times) => {
  let asked = 0;
  const engine = async () => {
    asked++;
    return left.map(id => ({ id }));
  };
  const manager = new LeaseManager({ engine } as never, 'worker', 1_000, ['test.work'], () => {});
  await manager.handBack();
  expect(asked).toBe(times);
});
