/** What was measured at a time (milliseconds). */
export interface Sample {
  at: number;
  value: number;
}

/** Units a day. `low` and `high`: where the slope lies with a probability of nine in ten, as far as a line is right. */
export interface Fit {
  perDay: number;
  low: number;
  high: number;
}

const DAY_MS = 86_400_000;
/** Of fewer days nothing is said. */
export const LEAST_DAYS = 5;

/** 95th percentiles of Student's t by degrees of freedom, from 3 on; beyond them the next lower of the list. */
const T95 = [
  [3, 2.353],
  [4, 2.132],
  [5, 2.015],
  [6, 1.943],
  [7, 1.895],
  [8, 1.86],
  [9, 1.833],
  [10, 1.812],
  [12, 1.782],
  [15, 1.753],
  [20, 1.725],
  [25, 1.708],
] as const;

/** A straight line by least squares, one sample a day; undefined: too few, or all of one time. */
export function fitLine(samples: readonly Sample[]): Fit | undefined {
  const n = samples.length;
  if (n < LEAST_DAYS) return undefined;
  const days = samples.map(({ at }) => at / DAY_MS);
  const meanDay = mean(days);
  const meanValue = mean(samples.map(({ value }) => value));
  let spread = 0;
  let together = 0;
  for (const [nth, { value }] of samples.entries()) {
    const away = days[nth]! - meanDay;
    spread += away * away;
    together += away * (value - meanValue);
  }
  if (spread === 0) return undefined;
  const perDay = together / spread;
  let off = 0;
  for (const [nth, { value }] of samples.entries()) {
    const residual = value - meanValue - perDay * (days[nth]! - meanDay);
    off += residual * residual;
  }
  const freedom = n - 2;
  const t = T95.findLast(([least]) => least <= freedom)![1];
  const margin = t * Math.sqrt(off / freedom / spread);
  return { perDay, low: perDay - margin, high: perDay + margin };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Nobody plans by what lies beyond. */
const MOST_DAYS = 3_650;

/** Until `left` is used up at this speed. 0: it is; null: never, or not in ten years. */
export function daysUntil(left: number, perDay: number): number | null {
  if (left <= 0) return 0;
  if (perDay <= 0) return null;
  const days = left / perDay;
  return days > MOST_DAYS ? null : Math.round(days * 10) / 10;
}
