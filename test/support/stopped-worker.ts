import { readFileSync } from 'node:fs';
import type { DaemonProcess, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

/** T in /proc: stopped as a whole, as by a paused virtual machine. */
const isStopped = ({ pid }: DaemonProcess): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

const leasesLost = async (worker: DaemonProcess): Promise<number> =>
  Number(/^trivet_lease_lost_total(?:\{.*\})? (\d+)/m.exec(await worker.metrics())?.[1] ?? 0);

/**
 * The workers of one test, of which some stop themselves. `endOthers` after each test: of all that it started only the
 * successor goes on, as the one that stops in the next test.
 */
export class StoppedWorkers {
  readonly workers: DaemonProcess[] = [];
  /** One that nobody has told to stop. */
  private unhurt: DaemonProcess | undefined;

  constructor(private readonly appliance: () => TestAppliance) {}

  /** As if none had run before. */
  async start(): Promise<DaemonProcess> {
    this.unhurt = this.ends(await this.appliance().worker());
    return this.unhurt;
  }

  /** The successor of the test before, while it lives. */
  async running(): Promise<DaemonProcess> {
    return this.unhurt && !this.unhurt.exited ? this.unhurt : this.start();
  }

  /** @param at failpoint at which the one that runs stops itself, at its nth time from now */
  async stopsAt(at: string, nth = 1): Promise<DaemonProcess> {
    const stale = await this.victim();
    await stale.arm(`${at}=stop@${nth}`);
    return stale;
  }

  /** The one that runs, whom the test stops itself. */
  async victim(): Promise<DaemonProcess> {
    const stale = await this.running();
    this.unhurt = undefined;
    return stale;
  }

  /** @param failpoints as TRIVET_FAILPOINT has them */
  async startWith(failpoints: string): Promise<DaemonProcess> {
    return this.ends(await this.appliance().worker({ TRIVET_FAILPOINT: failpoints }));
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

  async end(): Promise<void> {
    this.unhurt = undefined;
    await this.endOthers();
  }

  async endOthers(): Promise<void> {
    const others = this.workers.filter(worker => worker !== this.unhurt);
    this.workers.splice(0, this.workers.length, ...this.workers.filter(worker => worker === this.unhurt));
    for (const worker of others) {
      worker.signal('SIGCONT');
      await worker.stop('SIGKILL');
    }
  }
}
