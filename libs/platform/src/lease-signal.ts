const CHECK = Symbol('check of the lease');

/**
 * The signal of a call that may change something at a backend: it can be asked, too, whether it still may. A signal says
 * nothing to a process that stood still and goes on: its timers have not run yet. Ports demand one where a plain AbortSignal
 * would do for reading, so a change cannot be made without somebody who answers for its lease.
 */
export interface LeaseSignal extends AbortSignal {
  readonly [CHECK]: () => number;
}

/** @param check throws when the lease or the time of the call is over; gives for how many ms a request may take effect */
export function leaseSignal(signal: AbortSignal, check: () => number): LeaseSignal {
  return Object.defineProperty(signal, CHECK, { value: check }) as LeaseSignal;
}

/** The lease of `lease`, for as long as `wanted` has not fired either: narrower than it, never wider. `wanted` fires whenever that does. */
export const narrowed = (lease: LeaseSignal, wanted: AbortSignal): LeaseSignal =>
  leaseSignal(wanted, () => mayChange(lease));

/**
 * For changes that no operation makes, and that are harmless whenever they come: only their time is kept. A daemon and its
 * portals as the pool's row says; a folder that becomes the pool which it is configured to be; what a tenant has that is being
 * removed; a target that belongs to no volume; the end of daemons of a pool that
 * another host has, and shutting that one out (ADR 40); an attempt's own temporary, and what lies in
 * the trash and is noted as ours; what a connection test makes to try its rights at.
 */
export function unleased(signal: AbortSignal, boundMs = 60_000): LeaseSignal {
  const until = performance.now() + boundMs;
  return leaseSignal(signal, () => {
    const leftMs = until - performance.now();
    if (leftMs <= 0) throw new DOMException('the call has taken longer than its bound', 'TimeoutError');
    return leftMs;
  });
}

/**
 * Ask it immediately before each request that changes something, and wait for nothing in between. Gives for how many ms from
 * now the request may take effect: a store that can refuse what comes later is told to.
 */
export function mayChange(signal: LeaseSignal): number {
  signal.throwIfAborted();
  return signal[CHECK]();
}
