/**
 * The time of PostgreSQL, which is that of all hosts of the appliance: what one of them dates another one judges, and their own
 * clocks may differ by more than what is decided by it. Nobody's clock is asked: it goes on by the monotonic one.
 */
let heard: { ms: number; at: number } | undefined;

/** @param ms since 1970, as PostgreSQL has just said; the way of the answer makes it late, never early */
export function hearApplianceTime(ms: number): void {
  heard = { ms, at: performance.now() };
}

/** In ms since 1970; this machine's own until PostgreSQL was heard. */
export const applianceTime = (): number =>
  heard === undefined ? Date.now() : Math.round(heard.ms + performance.now() - heard.at);
