/**
 * Until when this host may serve a pool that another one could serve, in the folder of the pool's daemon, so that all workers of the
 * host know it, and the guard (lease-guard.ts) that outlives them.
 *
 *   lease      milliseconds of the boot clock, `forever` where there is no other host, 0 when another one has the pool; which
 *              boot that is: of another one it is over; and `leaving` while this host ends what it serves by itself: nothing begins
 *              any more, and the guard leaves it the time that it has
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
const LEAVING = 'leaving';

export class DaemonLease {
  readonly #path: string;

  constructor(private readonly folder: DaemonFolder) {
    this.#path = join(folder.path, 'lease');
  }

  /** It is given up from now on, and ends when it would have ended. */
  async leave(): Promise<void> {
    const [until = '0', boot = bootId()] = this.#read()?.split(' ') ?? [];
    await writeWhole(this.#path, `${until} ${boot} ${LEAVING}\n`);
  }

  async write(until: number | 'forever', addresses: readonly MovingAddress[]): Promise<void> {
    const lines = addresses.map(moving => `${withPrefix(moving)} ${moving.device}\n`).join('');
    if ((await this.#readAddresses()) !== lines) await writeWhole(this.#addressesPath, lines);
    await writeWhole(this.#path, `${until} ${bootId()}\n`);
  }

  /** Those that it was written with last: of a registration that may have others by now. */
  async addresses(): Promise<MovingAddress[]> {
    const lines = (await this.#readAddresses()).split('\n').filter(line => line !== '');
    return lines.map(line => {
      const [, address = '', prefixLength, device = ''] = /^(.*)\/(\d+) (.*)$/.exec(line) ?? [];
      return { address, prefixLength: Number(prefixLength), device };
    });
  }

  get isGivenUp(): boolean {
    return this.#read()?.split(' ')[0] === '0';
  }

  get #addressesPath(): string {
    return join(this.folder.path, 'addresses');
  }

  #readAddresses(): Promise<string> {
    return readFile(this.#addressesPath, 'utf8').catch(() => '');
  }

  /** Ask it right before each request that changes something. */
  require(): void {
    const [until, boot, state] = this.#read()?.split(' ') ?? [];
    if (until !== undefined && (boot !== bootId() || state === LEAVING)) throw this.#over();
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

  #read(): string | undefined {
    try {
      return readFileSync(this.#path, 'utf8').trim();
    } catch {
      return undefined;
    }
  }
}
