/**
 * Faults that a test orders from the fake. A fault is taken by the first call that matches its patterns (SQLite GLOB),
 * in the order they were set, as many times as it says; any process that shares the store may take it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorKind, StorageError } from '#platform/errors';
import type { FakeState } from '#test/fakes/object/fake-state';

/**
 * fail-before: the error, no effect. fail-after: the effect, then the error. hang: no effect, no answer until the
 * signal. hang-after: the effect, then no answer. delay: the call as usual, after delayMs. hold: the same, once
 * the fault is lifted (FakeControl.liftFault). late: `timeout` at once; the
 * effect after delayMs in this process or, without delayMs, when FakeControl.deliverLate is called.
 */
export type FaultMode = 'fail-before' | 'fail-after' | 'hang' | 'hang-after' | 'delay' | 'hold' | 'late';

export interface Fault {
  id: number;
  method: string;
  resource: string;
  mode: FaultMode;
  error: ErrorKind;
  message: string;
  delay_ms: number | null;
  remaining: number;
}

/** Takes one use of the first matching fault. */
export function takeFault(state: FakeState, method: string, resource: string): Fault | undefined {
  if (!state.get('SELECT 1 FROM faults WHERE remaining > 0 LIMIT 1')) return undefined;
  return state.get<Fault>(
    `UPDATE faults SET remaining = remaining - 1 WHERE id = (SELECT id FROM faults
       WHERE remaining > 0 AND ?1 GLOB method AND ?2 GLOB resource ORDER BY id LIMIT 1) RETURNING *`,
    method,
    resource,
  );
}

export const faultError = (fault: Fault): StorageError => new StorageError(fault.error, fault.message);

export const timedOut = (method: string): StorageError =>
  new StorageError('timeout', `no answer from the backend to ${method} in time; whether it took effect is unknown`);

/** Until the signal fires; then `timeout`. */
export function hang(method: string, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(timedOut(method));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

/** Until somebody lifts the fault. */
export async function heldBy(fault: Fault, state: FakeState, method: string, signal: AbortSignal): Promise<void> {
  while (state.get('SELECT 1 FROM faults WHERE id = ?', fault.id)) await pause(10, method, signal);
}

export async function pause(ms: number, method: string, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    throw timedOut(method);
  }
}
