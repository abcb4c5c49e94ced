import { expect, it } from 'vitest';
import { find } from '../command-line/find.js';
import { parse } from '../command-line/parse.js';
import { TABLE } from './table.js';
import { readTime } from './times.js';

const NOW = new Date('2026-03-02T10:30:00Z');

it.each([
  ['30m', '2026-03-02T10:00:00.000Z'],
  ['2h', '2026-03-02T08:30:00.000Z'],
  ['3d', '2026-02-27T10:30:00.000Z'],
  ['1w', '2026-02-23T10:30:00.000Z'],
  ['0m', '2026-03-02T10:30:00.000Z'],
  ['2026-01-31T00:00:00Z', '2026-01-31T00:00:00Z'],
  ['2026-01-31T00:00:00+02:00', '2026-01-31T00:00:00+02:00'],
])('%s is %s', (given, meant) => expect(readTime(given, NOW)).toBe(meant));

it('days begin at midnight of this host, over months and changes of its clock', () => {
  expect(readTime('today', NOW)).toBe(new Date(2026, 2, NOW.getDate()).toISOString());
  const first = new Date(2026, 2, 1, 0, 5);
  expect(readTime('yesterday', first)).toBe(new Date(2026, 1, 28).toISOString());
});

it.each(['tomorrow', '2 h', '-2h', '2y', '2026-01-31', 'h', ''])('refuses %j', given =>
  expect(() => readTime(given, NOW)).toThrow('expected today, yesterday, so long ago as 30m'),
);

it.each(['operation list', 'audit list', 'audit export'])('%s takes them', line => {
  const ask = (...words: string[]) => {
    const { command, rest } = find(TABLE, [...line.split(' '), ...words]);
    return parse(command, rest) as { since: string; until: string };
  };
  const { since, until } = ask('--since', '2h', '--until', '1h');
  expect(Date.parse(until) - Date.parse(since)).toBeGreaterThanOrEqual(3_600_000);
  expect(() => ask('--since', 'soon')).toThrow(`trivet ${line}: --since soon: expected today`);
});
