import { invalid } from '#platform/errors';
import type { Schedule } from '#storage/block/protection/periods';

const UNITS: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1440, w: 10_080 };
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const DAY = 1440;

const expected = 'expected NAME:EVERY:RETAIN or NAME:EVERY@AT:RETAIN, e.g. hourly:1h:48, nightly:1d@02:30:30';

/**
 * A schedule as people write it. EVERY is a number with m, h, d or w; AT is where in the period it begins: HH:MM, or for
 * a week day-HH:MM, e.g. `weekly:1w@sun-03:00:52`. Times are UTC.
 */
export function parseSchedule(text: string): Schedule {
  const parts = /^([^:@]+):(\d{1,5})([mhdw])(?:@(?:([a-z]{3})-)?(\d{2}):(\d{2}))?:(\d{1,5})$/.exec(text);
  if (!parts) throw invalid('schedule', `"${text}": ${expected}`);
  const [, name, count, unit, day, hours = '0', minutes = '0', retain] = parts;
  const atDay = day === undefined ? 0 : DAYS.indexOf(day);
  if (atDay < 0 || Number(hours) > 23 || Number(minutes) > 59) throw invalid('schedule', `"${text}": ${expected}`);
  return {
    name: name!,
    everyMinutes: Number(count) * UNITS[unit!]!,
    atMinutes: atDay * DAY + Number(hours) * 60 + Number(minutes),
    retain: Number(retain),
  };
}

/** The same text back, in its shortest form. */
export function showSchedule({ name, everyMinutes, atMinutes, retain }: Schedule): string {
  const unit = ['w', 'd', 'h', 'm'].find(letter => everyMinutes % UNITS[letter]! === 0)!;
  const two = (value: number) => String(value).padStart(2, '0');
  const clock = `${two(Math.floor((atMinutes % DAY) / 60))}:${two(atMinutes % 60)}`;
  const day = atMinutes >= DAY ? `${DAYS[Math.floor(atMinutes / DAY)]}-` : '';
  return `${name}:${everyMinutes / UNITS[unit]!}${unit}${atMinutes === 0 ? '' : `@${day}${clock}`}:${retain}`;
}
