import { expect, it } from 'vitest';
import { runsOf } from './runs';

const event = (n: number, type: string, detail: Record<string, unknown> = {}) => ({
  id: `${n}`,
  at: `at ${n}`,
  type,
  detail,
});
const attempt = (n: number, worker = 'a') => event(n, 'attempt', { attempt: n, fence: 100 + n, worker });

it('shows what only its counters tell apart as one line, and the rest as it was', () => {
  const events = [
    event(0, 'accepted'),
    ...Array.from({ length: 83 }, (_, n) => attempt(n + 1)),
    attempt(84, 'b'),
    event(85, 'step', { step: 'x' }),
  ];
  const runs = runsOf(events);
  expect(runs.map(({ last, count, firstAt }) => [last.type, last.id, count, firstAt])).toEqual([
    ['accepted', '0', 1, 'at 0'],
    ['attempt', '83', 83, 'at 1'],
    ['attempt', '84', 1, 'at 84'],
    ['step', '85', 1, 'at 85'],
  ]);
});
