/**
 * Shutting a host out of a Ceph cluster: its address goes on the cluster's blocklist, with port and nonce 0, which means every client from
 * there, those included that it has not begun yet. A client of its own for each image (bs_rbd) makes the narrower form, one client,
 * useless: a list of them is old before it is used.
 *
 * An entry that is there is not prolonged by another one (OSDMap keeps the first), so one that ends too soon is replaced. It
 * ends when the host itself says that it serves nothing any more, and not by time: what a suspended host had in hand may come after any time.
 */
import { isIPv6 } from 'node:net';
import { z } from 'zod';
import type { ClusterExports, ClusterView } from '#backends/cluster-exports';
import { hasLeftoverSockets } from '#backends/linux/leftover-sockets';
import { type CephClient, cephError, codeOf } from '#backends/rbd/ceph-errors';
import type { CephProcess } from '#backends/rbd/ceph-process';
import { isStorageError, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

const YEAR_SECONDS = 31_536_000;
/** The monitors take no whole number here. */
const KEPT_SECONDS = 10 * YEAR_SECONDS + 0.5;
/** Of a documentation network (RFC 5737): never on a list, so taking it off changes nothing. */
const NEVER_LISTED = '192.0.2.1:0/0';

const blocklist = z.array(z.object({ addr: z.string(), until: z.string() }));

/** Every client of an address. */
export const allClientsOf = (address: string): string => `${isIPv6(address) ? `[${address}]` : address}:0/0`;

/** Of what librados says of itself: `10.0.0.2:0/123`, `v1:[fd00::2]:0/123`, or several of them in brackets. */
export function addressOf(clients: string): string | undefined {
  const [, six, four] = /(?:^|[[,:])(?:\[([0-9a-f:.]+)\]|(\d+\.\d+\.\d+\.\d+)):\d+\/\d+/i.exec(clients) ?? [];
  return six ?? four;
}

export class RbdCluster implements Pick<ClusterExports, 'look' | 'shutOut' | 'letIn' | 'hasLeftovers'> {
  #mayLetIn = false;

  constructor(
    private readonly ceph: CephProcess,
    private readonly client: CephClient,
    /** Addresses that are of no host: none is known to the cluster by them. */
    private readonly moving: ReadonlySet<string>,
    /** Ports of all. */
    private readonly portals: readonly number[],
  ) {}

  look(signal: AbortSignal): Promise<ClusterView> {
    return this.#doing('ask the cluster for its blocklist', signal, async () => {
      const { fsid, clients } = await this.ceph.call(signal, 'identity');
      const address = addressOf(clients);
      if (address === undefined) throw new StorageError('internal', `the cluster calls this host ${clients}`);
      if (this.moving.has(address))
        throw new StorageError(
          'failed_precondition',
          `the cluster sees this host at ${address}, which moves with a pool: give the host an address of its own in that network`,
        );
      const isShutOut = (await this.#list(signal)).some(({ addr }) => addr === allClientsOf(address));
      const lacking = await this.#lacking(signal);
      return { fsid, address, isShutOut, ...(lacking === undefined ? {} : { lacking }) };
    });
  }

  shutOut(addresses: readonly string[], signal: LeaseSignal): Promise<void> {
    return this.#doing('shut a storage host out of the cluster', signal, async () => {
      for (const address of addresses) {
        const addr = allClientsOf(address);
        mayChange(signal);
        await this.#change(signal, { blocklistop: 'add', addr, expire: KEPT_SECONDS });
        if (await this.#isKept(addr, signal)) continue;
        mayChange(signal);
        await this.#change(signal, { blocklistop: 'rm', addr });
        await this.#change(signal, { blocklistop: 'add', addr, expire: KEPT_SECONDS });
        if (!(await this.#isKept(addr, signal)))
          throw new StorageError('unavailable', `the cluster does not keep ${addr} on its blocklist`);
      }
      // A disk of the cluster that is asked by who knows the list learns of it before it answers.
      await this.ceph.call(signal, 'barrier');
    });
  }

  letIn(address: string, signal: LeaseSignal): Promise<void> {
    return this.#doing(`let ${address} into the cluster again`, signal, async () => {
      mayChange(signal);
      await this.#change(signal, { blocklistop: 'rm', addr: allClientsOf(address) });
      // Its connections were refused; what comes next has new ones.
      this.ceph.close();
    });
  }

  hasLeftovers(): Promise<boolean> {
    return hasLeftoverSockets(this.portals);
  }

  async #isKept(addr: string, signal: AbortSignal): Promise<boolean> {
    const entry = (await this.#list(signal)).find(one => one.addr === addr);
    // `2036-11-24T15:48:51.321239+0000`
    const until = Date.parse(entry?.until.replace(/(\.\d{3})\d*/, '$1').replace(/([+-]\d\d)(\d\d)$/, '$1:$2') ?? '');
    return until - Date.now() > YEAR_SECONDS * 1_000;
  }

  async #list(signal: AbortSignal): Promise<z.output<typeof blocklist>> {
    const listed = (await this.ceph.call(signal, 'command', { prefix: 'osd blocklist ls' })) as unknown[] | undefined;
    // Of Ceph 16: one of addresses, and one of ranges.
    return blocklist.parse((listed ?? []).flat());
  }

  async #change(signal: AbortSignal, command: Readonly<Record<string, unknown>>): Promise<void> {
    await this.ceph.call(signal, 'command', { prefix: 'osd blocklist', ...command });
  }

  /** `profile rbd` lets its user put addresses on the list, and not take them off. */
  async #lacking(signal: AbortSignal): Promise<string | undefined> {
    if (this.#mayLetIn) return undefined;
    try {
      await this.#change(signal, { blocklistop: 'rm', addr: NEVER_LISTED });
    } catch (error) {
      if (codeOf(error) !== 'EACCES' && codeOf(error) !== 'EPERM') throw error;
      return `client.${this.client.user} lacks the caps mon 'allow command "osd blocklist"'`;
    }
    this.#mayLetIn = true;
    return undefined;
  }

  async #doing<T>(doing: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      signal.throwIfAborted();
      return await work();
    } catch (error) {
      if (signal.aborted && !isStorageError(error))
        throw new StorageError('timeout', `${doing}: not done in time`, { cause: error });
      throw cephError(error, doing, this.client);
    }
  }
}
