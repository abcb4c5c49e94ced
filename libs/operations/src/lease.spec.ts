import { afterEach, expect, it, vi } from 'vitest';
import { LeaseKeeper } from '#operations/lease';

afterEach(() => vi.useRealTimers());

it('renews a lease that was claimed while a renewal of others was under way', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const renewals: { ids: string[]; answer(): void }[] = [];
  const engine = async ({ name }: { name: string }, params: [unknown, unknown, string[]]) => {
    if (name.endsWith('claim')) return (params as unknown as [string[]])[0].map(id => ({ id, fence: '1' }));
    const [, , ids] = params;
    await new Promise<void>(answer => renewals.push({ ids, answer }));
    return ids.map(id => ({ id, fence: '1', cancelled: false }));
  };
  const keeper = new LeaseKeeper({ engine } as never, 'worker', 1_000, () => {});
  await keeper.claim('first');
  void keeper.renew();
  const second = (await keeper.claim('second'))!;
  vi.advanceTimersByTime(600);
  const ensured = keeper.ensure(second, 600);
  renewals[0]!.answer();
  await vi.waitFor(() => expect(renewals).toHaveLength(2));
  renewals[1]!.answer();
  await ensured;
  expect(renewals.map(({ ids }) => ids)).toEqual([['first'], ['first', 'second']]);
  expect(second.remainingMs()).toBeGreaterThanOrEqual(600);
});
