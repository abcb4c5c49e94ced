import { createLogger } from '#platform/log';

const log = createLogger('background');

/**
 * A round of background work that waits for no other, and that no other waits for: hosts that wait for their targets must
 * not wait for an object store that hangs. One that still runs is not begun again.
 */
export function beside(name: string, round: (signal: AbortSignal) => Promise<void>): (signal: AbortSignal) => void {
  let running = false;
  return signal => {
    if (running) return;
    running = true;
    round(signal)
      .catch(error => {
        if (!signal.aborted) log.warn({ part: name, err: error }, 'background work failed; the next round tries again');
      })
      .finally(() => {
        running = false;
      });
  };
}
