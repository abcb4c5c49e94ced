import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseSchedule, showSchedule } from '#storage/block/protection/schedule-text';

it.each([
  ['hourly:1h:48', { name: 'hourly', everyMinutes: 60, atMinutes: 0, retain: 48 }],
  ['nightly:1d@02:30:30', { name: 'nightly', everyMinutes: 1440, atMinutes: 150, retain: 30 }],
  ['weekly:1w@sun-03:00:52', { name: 'weekly', everyMinutes: 10_080, atMinutes: 8820, retain: 52 }],
  ['often:15m@00:05:4', { name: 'often', everyMinutes: 15, atMinutes: 5, retain: 4 }],
])('%s', (text, schedule) => {
  expect(parseSchedule(text)).toEqual(schedule);
  expect(showSchedule(schedule)).toBe(text);
});

it('reads what it shows', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 5, max: 10_080 }),
      fc.nat(10_079),
      fc.integer({ min: 1, max: 9_999 }),
      (every, at, retain) => {
        const schedule = { name: 'x', everyMinutes: every, atMinutes: at % every, retain };
        expect(parseSchedule(showSchedule(schedule))).toEqual(schedule);
      },
    ),
  );
});

it.each([
  '',
  'hourly',
  'hourly:1h',
  'hourly:1x:1',
  ':1h:1',
  'a:1h@24:00:1',
  'a:1h@00:60:1',
  'a:1w@xyz-00:00:1',
  'a:-1h:1',
  'a:1h:1 ',
])('%j is refused with what is expected', text => {
  expect(() => parseSchedule(text)).toThrow('NAME:EVERY:RETAIN');
});
