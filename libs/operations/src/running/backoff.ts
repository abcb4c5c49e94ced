/** Full jitter: waiting operations of a backend that comes back do not come back together. */
export const BACKOFF_FIRST_MS = 200;
export const BACKOFF_LIMIT_MS = 30_000;

export function backoffMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(BACKOFF_LIMIT_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempt - 1, 20));
  return Math.round(ceiling * (0.1 + 0.9 * random()));
}
