import { readFileSync } from 'node:fs';
import type { DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** T in /proc: stopped as a whole, as by a paused virtual machine. */
const isStopped = ({ pid }: DaemonProcess): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

const leasesLost = async (worker: DaemonProcess): Promise<number> =>
  Number(/^trivet_lease_lost_total(?:\{.*\})? (\d+)/m.exec(await worker.metrics())?.[1] ?? 0);

/** The workers of one test, of which some stop themselves. `end` after each test: none outlives it, stopped or not. */
export class StoppedWorkers {
  readonly workers: DaemonProcess[] = [];

  constructor(private readonly appliance: () => TestAppliance) {}

  /** @param at failpoint at which it stops itself, at its nth time */
  start(at?: string, nth = 1): Promise<DaemonProcess> {
    return this.startWith(at ? `${at}=stop@${nth}` : undefined);
  }

  /** @param failpoints as TRIVET_FAILPOINT has them */
  async startWith(failpoints: string | undefined): Promise<DaemonProcess> {
    const env = failpoints ? { TRIVET_FAILPOINT: failpoints } : undefined;
    return this.ends(await this.appliance().worker(env));
  }

  ends(worker: DaemonProcess): DaemonProcess {
    this.workers.push(worker);
    return worker;
  }

  async stopped(worker: DaemonProcess): Promise<void> {
    await until('the worker has stopped itself', () => isStopped(worker));
  }

  /** Lets it go on, and waits until it has noticed that it lost its lease. */
  async goesOn(stale: DaemonProcess): Promise<void> {
    stale.signal('SIGCONT');
    await until('the stale worker knows', async () => (await leasesLost(stale)) >= 1);
  }

  /** @param but so many of those that were started last */
  async end(but = 0): Promise<void> {
    for (const worker of this.workers.splice(0, this.workers.length - but)) {
      worker.signal('SIGCONT');
      await worker.stop('SIGKILL');
    }
  }
}
