/**
 * Until when this host may serve a pool that another one could serve, in the folder of the pool's daemon, so that all workers of the
 * host know it, and the guard (lease-guard.ts) that outlives them.
 *
 *   lease      UNTIL BOOT, or UNTIL BOOT STATE SINCE once this host gives it up, at SINCE of the boot clock.
 *              UNTIL   milliseconds of the boot clock, `forever` where there is no other host, 0 when it is over
 *              BOOT    which boot that is: of another one it is over
 *              STATE   `leaving` while this host ends what it serves by itself: nothing begins any more, and the guard leaves it
 *                      the time that it has; then `ended` or `killed`, which several workers of the host tell alike
 *   addresses  `ADDRESS/PREFIX DEVICE` a line: those that move with the pool
 *
 * Where leases are demanded, no file is as good as 0: a host that joins serves nothing until it has been told to.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { leasesAreDemanded } from '#backends/lease-demand';
import { bootClock, bootId } from '#backends/linux/boot-clock';
import { type MovingAddress, withPrefix } from '#backends/linux/moving-address';
import { type DaemonFolder, writeWhole } from '#backends/tgt/daemon-folder';
import { StorageError } from '#platform/errors';

const FOREVER = 'forever';
/** As long as a daemon may take to close its units, and twice. */
const LEAVING_MS = 5_000;

type GivenUp = 'leaving' | HowItEnded;
/** `ended`: by itself, with its units closed, or there was none. `killed`, or dead: the cluster waits for it. */
export type HowItEnded = 'ended' | 'killed';

export class DaemonLease {
  readonly #path: string;

  constructor(private readonly folder: DaemonFolder) {
    this.#path = join(folder.path, 'lease');
  }

  /** It is given up from now on, and ends when it would have ended. */
  async leave(): Promise<void> {
    const { until = '0', boot, state } = this.#read() ?? {};
    if (boot !== bootId()) return this.end('ended');
    if (state !== undefined) return;
    await this.#give(until === FOREVER ? `${bootClock() + LEAVING_MS}` : until, 'leaving');
  }

  async end(how: HowItEnded): Promise<void> {
    await this.#give('0', how);
  }

  async write(until: number | 'forever', addresses: readonly MovingAddress[]): Promise<void> {
    await this.writeAddresses(addresses);
    await writeWhole(this.#path, `${until} ${bootId()}\n`);
  }

  async writeAddresses(addresses: readonly MovingAddress[]): Promise<void> {
    const lines = addresses.map(moving => `${withPrefix(moving)} ${moving.device}\n`).join('');
    if ((await this.#readAddresses()) !== lines) await writeWhole(this.#addressesPath, lines);
  }

  #give(until: string, state: GivenUp): Promise<void> {
    return writeWhole(this.#path, `${until} ${bootId()} ${state} ${bootClock()}\n`);
  }

  /** Those that it was written with last: of a registration that may have others by now. */
  async addresses(): Promise<MovingAddress[]> {
    const lines = (await this.#readAddresses()).split('\n').filter(line => line !== '');
    return lines.map(line => {
      const [, address = '', prefixLength, device = ''] = /^(.*)\/(\d+) (.*)$/.exec(line) ?? [];
      return { address, prefixLength: Number(prefixLength), device };
    });
  }

  /** Since when, of the boot clock; undefined: it is not. Whoever asked for it before that has an answer of before. */
  get givenUpAt(): number | undefined {
    const { boot, state, since } = this.#read() ?? {};
    return boot === bootId() && state !== undefined ? since : undefined;
  }

  /** How what it had ended; undefined: it has not, or has been given anew since. */
  get how(): HowItEnded | undefined {
    const { state } = this.#read() ?? {};
    return state === 'leaving' ? undefined : state;
  }

  get #addressesPath(): string {
    return join(this.folder.path, 'addresses');
  }

  #readAddresses(): Promise<string> {
    return readFile(this.#addressesPath, 'utf8').catch(() => '');
  }

  /** Ask it right before each request that changes something. */
  require(): void {
    const { until, boot, state } = this.#read() ?? {};
    if (until !== undefined && (boot !== bootId() || state !== undefined)) throw this.#over();
    if (until === FOREVER || (until === undefined && !leasesAreDemanded())) return;
    if (until !== undefined && bootClock() < Number(until)) return;
    throw this.#over();
  }

  #over(): StorageError {
    return new StorageError(
      'unavailable',
      `pool ${this.folder.pool} is not served by this storage host now: another one has it, or takes it over`,
    );
  }

  #read(): { until: string; boot: string; state?: GivenUp; since?: number } | undefined {
    try {
      const [until = '0', boot = '', state, since] = readFileSync(this.#path, 'utf8').trim().split(' ');
      return { until, boot, ...(state !== undefined && { state: state as GivenUp, since: Number(since ?? 0) }) };
    } catch {
      return undefined;
    }
  }
}
