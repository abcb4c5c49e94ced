import type { ClusterExports, ClusterPool, PoolGuide } from '#backends/cluster-exports';
import type { DaemonRef } from '#backends/exporter';
import { announceAddress, isHostAddress, removeAddress } from '#backends/linux/moving-address';
import { DaemonLease } from '#backends/tgt/daemon-lease';
import { ensureGuard } from '#backends/tgt/lease-guard';
import { splitPortal } from '#backends/tgt/portals';
import { closeStandbyPortals, openStandbyPortals } from '#backends/tgt/standby-portals';
import { type ClusterPortals, TgtDaemons } from '#backends/tgt/tgt-daemons';
import { isStorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';

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
    await Promise.all(this.#daemonsOf(pool).map(daemon => this.#write(daemon, 'forever')));
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
    await this.#write(daemon, 0);
    // Hosts find them at the successor; whatever becomes of that, the daemon ends.
    const removed = await Promise.allSettled(this.portals.moving(daemon.pool, daemon.nth ?? 0).map(removeAddress));
    const isEnded = (await this.#daemons.find(daemon)) ? orderly && (await this.#end(daemon, signal)) : true;
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
    const { length } = this.portals.sets(pool.pool);
    await Promise.all(
      this.#daemonsOf(pool).map(async ({ nth, portals: own }) => {
        // An address that moves is where the pool is.
        const portals = this.portals.moving(pool.pool, nth).length > 0 ? [] : own;
        if (!guide) return closeStandbyPortals(portals);
        await openStandbyPortals(portals, {
          servedAt: async () => (await guide.servedAt()).find(portal => portals.includes(portal)),
          targetsOf: initiator => guide.targetsOf(initiator, { nth, of: length }),
        });
      }),
    );
  }

  #daemonsOf({ tenantId, pool }: ClusterPool): (DaemonRef & { nth: number })[] {
    return this.portals.sets(pool).map((portals, nth) => ({ tenantId, pool, nth, portals }));
  }

  async #end(ref: DaemonRef, signal: LeaseSignal): Promise<boolean> {
    try {
      return (await this.#daemons.stop(ref, signal)) !== 'killed';
    } catch (error) {
      if (!isStorageError(error)) throw error;
      return false;
    }
  }

  async #write(daemon: DaemonRef, until: number | 'forever'): Promise<void> {
    const folder = this.#daemons.folder(daemon);
    await folder.prepare();
    await new DaemonLease(folder).write(until, this.portals.moving(daemon.pool, daemon.nth ?? 0));
  }
}
