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
    await this.#write(pool, untilMs);
    try {
      await ensureGuard(this.#daemons.folder(pool));
    } catch (error) {
      await this.#write(pool, 0);
      throw error;
    }
    // Once more and again: a host that stands still answers its neighbours for an address that it has lost.
    for (const moving of this.portals.moving(pool.pool)) announceAddress(moving);
  }

  holdForever(pool: ClusterPool): Promise<void> {
    return this.#write(pool, 'forever');
  }

  async drop(pool: ClusterPool, { orderly }: { orderly: boolean }, signal: LeaseSignal): Promise<boolean> {
    mayChange(signal);
    await this.#write(pool, 0);
    // Hosts find them at the successor; whatever becomes of that, the daemon ends.
    const removed = await Promise.allSettled(this.portals.moving(pool.pool).map(removeAddress));
    const ref: DaemonRef = { tenantId: pool.tenantId, pool: pool.pool, portals: [] };
    const isEnded = (await this.#daemons.find(ref)) ? orderly && (await this.#end(ref, signal)) : true;
    await this.#daemons.kill(ref);
    for (const one of removed) if (one.status === 'rejected') throw one.reason;
    return isEnded;
  }

  portalsHere(pool: string): string[] {
    return this.portals.all(pool).filter(portal => isHostAddress(splitPortal(portal).address));
  }

  async sendOn({ pool }: ClusterPool, guide: PoolGuide | undefined): Promise<void> {
    // An address that moves is where the pool is.
    const portals = this.portals.moving(pool).length > 0 ? [] : this.portals.all(pool);
    if (!guide) return closeStandbyPortals(portals);
    await openStandbyPortals(portals, {
      servedAt: async () => (await guide.servedAt()).find(portal => portals.includes(portal)),
      targetsOf: initiator => guide.targetsOf(initiator),
    });
  }

  async #end(ref: DaemonRef, signal: LeaseSignal): Promise<boolean> {
    try {
      return (await this.#daemons.stop(ref, signal)) !== 'killed';
    } catch (error) {
      if (!isStorageError(error)) throw error;
      return false;
    }
  }

  async #write(pool: ClusterPool, until: number | 'forever'): Promise<void> {
    const folder = this.#daemons.folder(pool);
    await folder.prepare();
    await new DaemonLease(folder).write(until, this.portals.moving(pool.pool));
  }
}
