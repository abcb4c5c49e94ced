import { expect, it } from 'vitest';
import { daysUntil, fitLine } from '#storage/usage/linear-fit';

const DAY = 86_400_000;
const days = (...values: number[]) => values.map((value, day) => ({ at: day * DAY, value }));

it('says nothing of fewer than five days, or of one time', () => {
  expect(fitLine(days(1, 2, 3, 4))).toBeUndefined();
  expect(fitLine(Array.from({ length: 6 }, () => ({ at: 0, value: 1 })))).toBeUndefined();
});

it('has the growth of a straight line without doubt', () => {
  const fit = fitLine(days(0, 10, 20, 30, 40, 50))!;
  expect(fit.perDay).toBeCloseTo(10);
  expect(fit.high - fit.low).toBeCloseTo(0);
});

it('gives the interval of Student’s t', () => {
  // Worked out by hand: slope 2, squares of residuals 0.8, 3 degrees of freedom, spread 10.
  const fit = fitLine(days(1, 3, 6, 7, 9))!;
  expect(fit.perDay).toBeCloseTo(2);
  const margin = 2.353 * Math.sqrt(0.8 / 3 / 10);
  expect([fit.low, fit.high]).toEqual([expect.closeTo(2 - margin), expect.closeTo(2 + margin)]);
});

it('doubts the more the more days differ', () => {
  const calm = fitLine(days(0, 11, 19, 31, 39, 50))!;
  const wild = fitLine(days(0, 60, 0, 70, 10, 80))!;
  expect(wild.high - wild.low).toBeGreaterThan(10 * (calm.high - calm.low));
  expect(wild.low).toBeLessThan(0);
});

it.each([
  [100, 10, 10],
  [-5, 10, 0],
  [0, 0, 0],
  [-5, -3, 0],
  [100, 0, null],
  [100, -3, null],
  [1e9, 1, null],
])('%d left at %d a day are %s days', (left, perDay, expected) => {
  expect(daysUntil(left, perDay)).toBe(expected);
});
