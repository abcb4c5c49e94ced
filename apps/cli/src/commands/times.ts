import { time } from '#admin/contract/common';
import { parsed, UsageError } from '../command-line/command.js';

const UNITS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Of the API, in RFC 3339: as it was given, or from how people say it. Days begin at midnight of this host. */
export function readTime(given: string, now = new Date()): string {
  const [, count, unit] = /^(\d{1,5})([mhdw])$/.exec(given) ?? [];
  if (unit !== undefined) return new Date(now.getTime() - Number(count) * UNITS_MS[unit as 'm']).toISOString();
  const daysAgo = ['today', 'yesterday'].indexOf(given);
  if (daysAgo !== -1) return new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo).toISOString();
  if (time.safeParse(given).success) return given;
  throw new UsageError(
    'expected today, yesterday, so long ago as 30m, 2h, 3d or 1w, or a time of RFC 3339 such as 2026-01-31T00:00:00Z',
  );
}

const at = (about: string) => parsed('time', about, given => readTime(given));

/** The begin and the end of what is asked for. */
export const sinceAndUntil = (what: string) => ({
  since: at(`${what} at it or later: today, yesterday, 30m, 2h, 3d, 1w ago, or RFC 3339`),
  until: at(`${what} before it, said likewise`),
});
