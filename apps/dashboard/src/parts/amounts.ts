const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** As of pools (POOL_MARKS): from where it is much, and too much. */
export const MARKS = { filling: 0.85, full: 0.95 } as const;

/** Decimal text of bytes for people: three digits and a unit of 1024. */
export function showBytes(text: string | number | bigint | null | undefined): string {
  if (text === null || text === undefined || text === '') return '–';
  let value = Number(text);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${trimmed(value.toFixed(digits))} ${UNITS[unit]}`;
}

/**
 * `10 GiB` and `10 G` count by 1024, `10 GB` by 1000, as units are written: exact bytes as decimal text, or undefined for what
 * is no size or no whole number of bytes.
 */
export function readBytes(text: string): string | undefined {
  const match = /^\s*(\d{1,19})(?:\.(\d{1,6}))?\s*(?:([kmgtpe])(ib|b)?|b)?\s*$/i.exec(text);
  if (!match) return undefined;
  const [, whole = '0', fraction = '', letter = '', unit] = match;
  const base = unit?.toLowerCase() === 'b' ? 1000n : 1024n;
  const factor = base ** BigInt(' kmgtpe'.indexOf(letter.toLowerCase() || ' '));
  const scaled = BigInt(whole + fraction) * factor;
  const parts = 10n ** BigInt(fraction.length);
  const digits = (scaled / parts).toString();
  return scaled % parts === 0n && digits.length <= 19 ? digits : undefined;
}

/** As they are sent. */
export const exactBytes = (digits: string): string => `${BigInt(digits).toLocaleString('en-US')} bytes`;

/** If it goes on as in the last week. */
export const showDaysToFull = (days: number | null): string =>
  days === null ? '–' : days < 1 ? 'less than a day' : `${Math.floor(days)} days`;

export const showCount = (value: number | string | bigint): string => Number(value).toLocaleString('en-US');

export const showPercent = (share: number): string =>
  share > 0 && share < 0.01 ? 'below 1 %' : `${Math.round(share * 100)} %`;

/** Share of text numbers that may go beyond 2^53; 0 of nothing. */
export const shareOf = (part: string, whole: string): number =>
  Number(whole) === 0 ? 0 : Math.max(0, Math.min(1, Number(part) / Number(whole)));

const STEPS: readonly [number, string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

/** `2 h 5 min`, `13 s`, `40 ms`. */
export function showDuration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const at = STEPS.findIndex(([size]) => ms >= size);
  const [size, unit] = STEPS[at] as [number, string];
  const count = Math.floor(ms / size);
  const next = STEPS[at + 1];
  const rest = next ? Math.floor((ms - count * size) / next[0]) : 0;
  return rest > 0 && next ? `${count} ${unit} ${rest} ${next[1]}` : `${count} ${unit}`;
}

/** `3 min ago`, `in 20 s`, `now`. */
export function showAgo(at: string, now: number): string {
  const ms = now - Date.parse(at);
  const coarse = Math.abs(ms);
  if (coarse < 1_500) return 'now';
  const step = STEPS.find(([size]) => coarse >= size) ?? [1_000, 's'];
  const text = `${Math.floor(coarse / step[0])} ${step[1]}`;
  return ms >= 0 ? `${text} ago` : `in ${text}`;
}

export const showTime = (at: string): string =>
  new Date(at).toLocaleString('en-GB', {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'short',
  });

const trimmed = (digits: string): string => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits);
