import { readFileSync } from 'node:fs';
import type { DaemonProcess } from '#test/support/appliance';

/** T in /proc: stopped as a whole, as by a paused virtual machine. */
export const isStopped = ({ pid }: DaemonProcess): boolean =>
  /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

export const leasesLost = async (worker: DaemonProcess): Promise<number> =>
  Number(/^trivet_lease_lost_total(?:\{.*\})? (\d+)/m.exec(await worker.metrics())?.[1] ?? 0);
