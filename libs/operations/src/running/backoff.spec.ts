import { describe, expect, it } from 'vitest';
import { BACKOFF_FIRST_MS, BACKOFF_LIMIT_MS, backoffMs } from '#operations/running/backoff';

const longest = (attempt: number) => backoffMs(attempt, () => 1);
const shortest = (attempt: number) => backoffMs(attempt, () => 0);

describe('the back-off', () => {
  it('doubles up to its limit and stays there', () => {
    expect([1, 2, 3, 4].map(longest)).toEqual([1, 2, 4, 8].map(n => n * BACKOFF_FIRST_MS));
    for (const attempt of [9, 20, 100, 10_000]) expect(longest(attempt)).toBe(BACKOFF_LIMIT_MS);
  });

  it('spreads over nearly all of it, and never is nothing', () => {
    for (const attempt of [1, 5, 50]) {
      expect(shortest(attempt)).toBeGreaterThan(0);
      expect(shortest(attempt)).toBeLessThanOrEqual(longest(attempt) / 5);
      for (let n = 0; n < 100; n++) {
        const ms = backoffMs(attempt);
        expect(ms).toBeGreaterThanOrEqual(shortest(attempt));
        expect(ms).toBeLessThanOrEqual(longest(attempt));
      }
    }
  });
});
