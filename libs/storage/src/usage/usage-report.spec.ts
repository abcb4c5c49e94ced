import { expect, it } from 'vitest';
import { hoursOf, monthOf } from '#storage/usage/usage-report';

const NOW = new Date('2026-11-27T10:20Z');
const hours = (month: string, madeAt: string) => hoursOf(monthOf(month, NOW), new Date(madeAt));

it('counts the hours of a month as far as it is over, with the one that it is', () => {
  expect(hours('2026-10', '2026-01-01T00:00Z')).toBe(31 * 24);
  expect(hours('2026-11', '2026-01-01T00:00Z')).toBe(26 * 24 + 11);
  expect(hours('2026-12', '2026-01-01T00:00Z')).toBe(0);
});

it('counts none before the hour in which the tenant was made', () => {
  expect(hours('2026-10', '2026-10-30T23:59Z')).toBe(25);
  expect(hours('2026-11', '2026-11-27T10:05Z')).toBe(1);
  expect(hours('2026-10', '2026-11-01T00:00Z')).toBe(0);
});
