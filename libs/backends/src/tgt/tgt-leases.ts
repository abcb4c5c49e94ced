import type { ClusterExports, ClusterPool, PoolGuide } from '#backends/cluster-exports';
import type { DaemonRef } from '#backends/exporter';
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

  async hold(pool: ClusterPool, untilMs: number): Promise<void> {
    const daemons = this.#daemonsOf(pool);
    await this.#leaveFormer(pool, daemons.length, 0);
    await Promise.all(daemons.map(daemon => this.#write(daemon, untilMs)));
    try {
      await Promise.all(daemons.map(daemon => ensureGuard(this.#daemons.folder(daemon))));
    } catch (error) {
      await Promise.all(daemons.map(daemon => this.#write(daemon, 0)));
      throw error;
    }
    // Once more and again: a host that stands still answers its neighbours for an address that it has lost.
    for (const { nth } of daemons) for (const moving of this.portals.moving(pool.pool, nth)) announceAddress(moving);
  }

  async holdForever(pool: ClusterPool): Promise<void> {
    const daemons = this.#daemonsOf(pool);
    await this.#leaveFormer(pool, daemons.length, 'forever');
    await Promise.all(daemons.map(daemon => this.#write(daemon, 'forever')));
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
    // One that has died left the cluster waiting for it, and so does one that is killed.
    const isThere = (await folder.read()) !== undefined || (await this.#daemons.find(daemon)) !== undefined;
    await folder.prepare();
    if (orderly) await lease.leave();
    else await this.#write(daemon, 0);
    // Hosts find them at the successor; whatever becomes of that, the daemon ends.
    const removed = await Promise.allSettled(addresses.map(removeAddress));
    const isEnded = isThere ? orderly && (await this.#end(daemon, signal)) : true;
    if (orderly) await this.#write(daemon, 0);
    await this.#daemons.kill(daemon);
    for (const one of removed) if (one.status === 'rejected') throw one.reason;
    return isEnded;
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

  async #end(ref: DaemonRef, signal: LeaseSignal): Promise<boolean> {
    try {
      return (await this.#daemons.stop(ref, signal)) === 'ended';
    } catch (error) {
      if (!isStorageError(error)) throw error;
      return false;
    }
  }

  /** Sets of portals that the pool has no more: what their daemons had of addresses must not be taken away from whoever has it now. */
  async #leaveFormer(pool: ClusterPool, of: number, until: 0 | 'forever'): Promise<void> {
    for (const daemon of this.#daemons.beyond({ ...pool, of })) {
      const lease = new DaemonLease(this.#daemons.folder(daemon));
      const isLeft = until === 'forever' || lease.isGivenUp;
      if (!isLeft || (await lease.addresses()).length > 0) await this.#write(daemon, until);
    }
  }

  async #write(daemon: DaemonRef, until: number | 'forever'): Promise<void> {
    const folder = this.#daemons.folder(daemon);
    await folder.prepare();
    const lease = new DaemonLease(folder);
    const former = await lease.addresses();
    await lease.write(until, this.portals.moving(daemon.pool, daemon.nth ?? 0));
    for (const moving of former) {
      if (this.#isOfPool(daemon.pool, moving)) continue;
      // What is served goes on: it has other addresses.
      await removeAddress(moving).catch(error =>
        log.warn({ pool: daemon.pool, ...moving, err: error }, 'an address that the pool had before cannot be removed'),
      );
    }
  }

  /** Of any of its daemons. */
  #isOfPool(pool: string, moving: MovingAddress): boolean {
    const all = this.portals.sets(pool).flatMap((_, nth) => this.portals.moving(pool, nth));
    return all.some(one => isSameAddress(one, moving));
  }
}
