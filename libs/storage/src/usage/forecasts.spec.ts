import { expect, it } from 'vitest';
import { gone } from '#storage/usage/forecasts';

const seen = (...pairs: [used: number, total: number][]) => pairs.map(([used, total], at) => ({ at, used, total }));
const values = (...pairs: [number, number][]) => gone(seen(...pairs)).map(({ value }) => value);

it('goes by what is used of a pool of its own, also when it was enlarged', () => {
  expect(values([1, 10], [2, 10], [3, 20], [4, 20])).toEqual([1, 2, 3, 4]);
});

it('goes by what is not free any more where others take the room, too', () => {
  expect(values([1, 10], [1, 9], [1, 8], [1, 6])).toEqual([-9, -8, -7, -5]);
});
