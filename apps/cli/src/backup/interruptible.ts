import { constants } from 'node:os';
import { LauncherError } from '../home.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Ends what runs in an orderly way at the first of these; the second one ends the process. `then`: what comes of it. */
export async function interruptible<T>(then: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const end = (signal: (typeof SIGNALS)[number]): void => {
    // As a shell tells of a process that a signal has ended.
    const code = 128 + constants.signals[signal];
    controller.abort(new LauncherError(`ended by ${signal}; ${then}`, code));
  };
  for (const signal of SIGNALS) process.once(signal, end);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of SIGNALS) process.off(signal, end);
  }
}
