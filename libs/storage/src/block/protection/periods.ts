/**
 * Time is cut into periods of equal length, counted in UTC from a Monday: daylight saving moves nothing, and any process
 * finds the same borders. A schedule takes one snapshot a period.
 */
export interface Schedule {
  /** Unique in its template; part of the snapshots' names. */
  name: string;
  /** Length of a period; at most a week. */
  everyMinutes: number;
  /** Where a period begins, after a multiple of everyMinutes since Monday 00:00; less than everyMinutes. */
  atMinutes: number;
  /** How many snapshots are kept. */
  retain: number;
}

const MINUTE = 60_000;
const MONDAY = Date.UTC(1970, 0, 5);

/** Beginning of the period that `now` is in. */
export function periodAt(schedule: Schedule, now: Date): Date {
  const origin = MONDAY + schedule.atMinutes * MINUTE;
  const length = schedule.everyMinutes * MINUTE;
  return new Date(origin + Math.floor((now.getTime() - origin) / length) * length);
}

/** Beginning of the next one, always after `now`. */
export function nextPeriod(schedule: Schedule, now: Date): Date {
  return new Date(periodAt(schedule, now).getTime() + schedule.everyMinutes * MINUTE);
}
