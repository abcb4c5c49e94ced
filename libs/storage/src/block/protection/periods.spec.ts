import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextPeriod, periodAt, type Schedule } from '#storage/block/protection/periods';

const WEEK = 7 * 24 * 60;
const schedule = fc.integer({ min: 5, max: WEEK }).chain(everyMinutes =>
  fc.record({
    name: fc.constant('s'),
    everyMinutes: fc.constant(everyMinutes),
    atMinutes: fc.integer({ min: 0, max: everyMinutes - 1 }),
    retain: fc.constant(1),
  }),
);
const instant = fc.date({
  min: new Date('1969-12-01T00:00:00Z'),
  max: new Date('2500-01-01T00:00:00Z'),
  noInvalidDate: true,
});
const of = (everyMinutes: number, atMinutes: number): Schedule => ({ name: 's', everyMinutes, atMinutes, retain: 1 });

describe('periods', () => {
  it('hold every instant in exactly one, of the length of the schedule', () => {
    fc.assert(
      fc.property(schedule, instant, (s, now) => {
        const begin = periodAt(s, now).getTime();
        const end = nextPeriod(s, now).getTime();
        expect(begin).toBeLessThanOrEqual(now.getTime());
        expect(end).toBeGreaterThan(now.getTime());
        expect(end - begin).toBe(s.everyMinutes * 60_000);
      }),
    );
  });

  it('follow each other without a gap, whenever one looks', () => {
    fc.assert(
      fc.property(schedule, instant, (s, now) => {
        const next = nextPeriod(s, now);
        expect(periodAt(s, next)).toEqual(next);
        expect(periodAt(s, new Date(next.getTime() - 1))).toEqual(periodAt(s, now));
      }),
    );
  });

  it.each([
    ['hourly', of(60, 0), '2026-11-20T10:37:12.345Z', '2026-11-20T10:00:00Z'],
    ['a quarter past the hour, before it', of(60, 15), '2026-11-20T10:14:59.999Z', '2026-11-20T09:15:00Z'],
    ['daily', of(1440, 0), '2026-11-20T23:59:59.999Z', '2026-11-20T00:00:00Z'],
    ['daily at 02:30', of(1440, 150), '2026-11-20T02:29:00Z', '2026-11-19T02:30:00Z'],
    ['weekly on Monday', of(WEEK, 0), '2026-11-20T12:00:00Z', '2026-11-16T00:00:00Z'],
    ['weekly on Sunday', of(WEEK, 8640), '2026-11-20T12:00:00Z', '2026-11-15T00:00:00Z'],
    ['across the change of the clocks in Europe', of(1440, 60), '2026-10-25T01:30:00Z', '2026-10-25T01:00:00Z'],
  ])('begin where people expect them: %s', (_, s, now, begin) => {
    expect(periodAt(s, new Date(now))).toEqual(new Date(begin));
  });
});
