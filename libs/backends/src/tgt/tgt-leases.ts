import type { ClusterExports, ClusterPool, PoolGuide } from '#backends/cluster-exports';
import type { DaemonRef } from '#backends/exporter';
import { bootClock } from '#backends/linux/boot-clock';
import {
  announceAddress,
  isHostAddress,
  isSameAddress,
  type MovingAddress,
  removeAddress,
} from '#backends/linux/moving-address';
import { DaemonLease } from '#backends/tgt/daemon-lease';
import { ensureGuard } from '#backends/tgt/lease-guard';
import { canonicalPortal, splitPortal } from '#backends/tgt/portals';
import { closeStandbyPortals, openStandbyPortals, standbyPortalsOf } from '#backends/tgt/standby-portals';
import { type ClusterPortals, TgtDaemons } from '#backends/tgt/tgt-daemons';
import { isStorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';

const log = createLogger('exports');

/** The host's part of ClusterExports: daemons of tgt, each with its lease and its addresses. */
export class TgtLeases implements Pick<ClusterExports, 'hold' | 'holdForever' | 'drop' | 'portalsHere' | 'sendOn'> {
  readonly #daemons: TgtDaemons;

  constructor(
    folder: string,
    private readonly portals: ClusterPortals,
  ) {
    this.#daemons = new TgtDaemons(folder, portals);
  }

  async hold(pool: ClusterPool, untilMs: number, askedAt = bootClock()): Promise<void> {
    const daemons = this.#daemonsOf(pool);
    const held = daemons.filter(daemon => {
      const since = new DaemonLease(this.#daemons.folder(daemon)).givenUpAt;
      return since === undefined || askedAt > since;
    });
    await Promise.all(held.map(daemon => this.#write(daemon, untilMs)));
    try {
      await Promise.all(held.map(daemon => ensureGuard(this.#daemons.folder(daemon))));
    } catch (error) {
      await Promise.all(held.map(daemon => this.#write(daemon, 0)));
      throw error;
    }
    await this.#leaveFormer(pool, daemons.length);
    // Once more and again: a host that stands still answers its neighbours for an address that it has lost.
    for (const { nth } of held) for (const moving of this.portals.moving(pool.pool, nth)) announceAddress(moving);
  }

  async holdForever(pool: ClusterPool): Promise<void> {
    const daemons = this.#daemonsOf(pool);
    const former = this.#daemons.beyond({ ...pool, of: daemons.length });
    await Promise.all([...daemons, ...former].map(daemon => this.#write(daemon, 'forever')));
  }

  async drop(pool: ClusterPool, how: { orderly: boolean }, signal: LeaseSignal): Promise<boolean> {
    const daemons = this.#daemonsOf(pool);
    const all = [...daemons, ...this.#daemons.beyond({ ...pool, of: daemons.length })];
    const ended = await Promise.allSettled(all.map(daemon => this.#drop(daemon, how, signal)));
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    return ended.every(one => one.status === 'fulfilled' && one.value);
  }

  async #drop(daemon: DaemonRef, { orderly }: { orderly: boolean }, signal: LeaseSignal): Promise<boolean> {
    mayChange(signal);
    const folder = this.#daemons.folder(daemon);
    const lease = new DaemonLease(folder);
    const addresses = [...(await lease.addresses()), ...this.portals.moving(daemon.pool, daemon.nth ?? 0)];
    const own = addresses.filter((one, at) => addresses.findIndex(other => isSameAddress(one, other)) === at);
    await folder.prepare();
    await lease.writeAddresses(this.portals.moving(daemon.pool, daemon.nth ?? 0));
    if (orderly) {
      await lease.leave();
      await ensureGuard(folder);
    } else if (lease.how === undefined) {
      const isThere = (await folder.read()) !== undefined || (await this.#daemons.find(daemon)) !== undefined;
      await lease.end(isThere ? 'killed' : 'ended');
    }
    // Hosts find them at the successor; whatever becomes of that, the daemon ends.
    const removed = await Promise.allSettled(own.map(removeAddress));
    if (orderly) await this.#end(daemon, lease, signal);
    await this.#daemons.kill(daemon);
    for (const one of removed) if (one.status === 'rejected') throw one.reason;
    return lease.how === 'ended';
  }

  portalsHere(pool: string): string[] {
    return this.portals
      .sets(pool)
      .flat()
      .filter(portal => isHostAddress(splitPortal(portal).address));
  }

  async sendOn(pool: ClusterPool, guide: PoolGuide | undefined): Promise<void> {
    const daemons = this.#daemonsOf(pool);
    const owner = `${pool.tenantId}/${pool.pool}`;
    // An address that moves is where the pool is.
    const sets = daemons.map(({ nth, portals }) => (this.portals.moving(pool.pool, nth).length > 0 ? [] : portals));
    const kept = guide ? sets.flat().map(canonicalPortal) : [];
    await closeStandbyPortals(standbyPortalsOf(owner).filter(portal => !kept.includes(portal)));
    if (!guide) return;
    await Promise.all(
      sets.map(async (portals, nth) => {
        const ofDaemon = {
          servedAt: async () => (await guide.servedAt()).find(portal => portals.includes(portal)),
          targetsOf: (initiator: string) => guide.targetsOf(initiator, { nth, of: sets.length }),
        };
        await openStandbyPortals(portals, ofDaemon, owner);
      }),
    );
  }

  #daemonsOf({ tenantId, pool }: ClusterPool): (DaemonRef & { nth: number })[] {
    return this.portals.sets(pool).map((portals, nth) => ({ tenantId, pool, nth, portals }));
  }

  /** What it comes to is told alike by all workers of the host that end it, whoever of them did. */
  async #end(ref: DaemonRef, lease: DaemonLease, signal: LeaseSignal): Promise<void> {
    try {
      await this.#daemons.stop(ref, signal, async stopped => {
        if (lease.how === undefined) await lease.end(stopped === 'ended' || stopped === 'absent' ? 'ended' : 'killed');
      });
    } catch (error) {
      if (!isStorageError(error)) throw error;
      if (lease.how === undefined) await lease.end('killed');
    }
  }

  /** Sets of portals that the pool has no more: what their daemons had of addresses must not be taken away from whoever has it now. */
  async #leaveFormer(pool: ClusterPool, of: number): Promise<void> {
    for (const daemon of this.#daemons.beyond({ ...pool, of })) {
      const lease = new DaemonLease(this.#daemons.folder(daemon));
      await this.#giveBack(daemon, lease);
      await lease.leave();
    }
  }

  async #write(daemon: DaemonRef, until: number | 'forever'): Promise<void> {
    const folder = this.#daemons.folder(daemon);
    await folder.prepare();
    const lease = new DaemonLease(folder);
    const addresses = this.portals.moving(daemon.pool, daemon.nth ?? 0);
    const former = await lease.addresses();
    await lease.write(until, addresses);
    await this.#remove(daemon, former);
  }

  async #giveBack(daemon: DaemonRef, lease: DaemonLease): Promise<void> {
    const former = await lease.addresses();
    if (former.length === 0) return;
    await lease.writeAddresses([]);
    await this.#remove(daemon, former);
  }

  /** What is served goes on: it has other addresses. */
  async #remove({ pool }: DaemonRef, former: readonly MovingAddress[]): Promise<void> {
    for (const moving of former)
      if (!this.#isOfPool(pool, moving))
        await removeAddress(moving).catch(error =>
          log.warn({ pool, ...moving, err: error }, 'an address that the pool had before cannot be removed'),
        );
  }

  /** Of any of its daemons. */
  #isOfPool(pool: string, moving: MovingAddress): boolean {
    const all = this.portals.sets(pool).flatMap((_, nth) => this.portals.moving(pool, nth));
    return all.some(one => isSameAddress(one, moving));
  }
}
