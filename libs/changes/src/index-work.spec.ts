import { describe, expect, it } from 'vitest';
import { type IndexWork, needsList } from '#changes/index-work';

const since = (stepsSince: number, rangesSince = 0): IndexWork => ({
  target: undefined as never,
  list: { ranges: 1_000, stepsSince, rangesSince },
});

describe('an allocated list is kept', () => {
  it('of each sixteenth cut after the last one', () => {
    expect([0, 13, 14].map(steps => needsList(since(steps), { ranges: 1 }))).toEqual([false, false, false]);
    expect(needsList(since(15), { ranges: 1 })).toBe(true);
  });

  it('when the steps since the last one have more ranges than it', () => {
    expect(needsList(since(1, 900), { ranges: 100 })).toBe(false);
    expect(needsList(since(1, 900), { ranges: 101 })).toBe(true);
  });

  it('where there is none to begin with, or no step to it', () => {
    expect(needsList({ target: undefined as never }, { ranges: 1 })).toBe(true);
    expect(needsList(since(1), undefined)).toBe(true);
  });
});
