import type { ClusterView } from '#backends/cluster-exports';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import type { ClusterBackend, ClusterViews } from '#storage/block/export-leases/cluster-views';
import type { LeaseStore } from '#storage/block/export-leases/lease-store';

const log = createLogger('exports');

export const DROP_MS = 8_000;
const LET_IN_MS = 10_000;

/** A host that finds itself shut out of a cluster: it is let in when nothing that it has begun can come any more. */
export class ComeBack {
  /** Said once, by cluster. */
  private readonly said = new Map<string, string>();

  constructor(
    private readonly store: LeaseStore,
    private readonly views: ClusterViews,
  ) {}

  /** Whether some cluster has shut it out. */
  isDue(clusters: readonly ClusterBackend[]): boolean {
    return clusters.some(({ backendId }) => this.views.of(backendId)?.isShutOut);
  }

  /** @param dropped told of each pool that is served no more */
  async run(
    clusters: readonly ClusterBackend[],
    dropped: (place: { backendId: string; pool: string }) => void,
  ): Promise<void> {
    const shutOut = new Map<string, ClusterView>();
    for (const { backendId } of clusters) {
      const view = this.views.of(backendId);
      if (view?.isShutOut) shutOut.set(view.fsid, view);
    }
    for (const view of shutOut.values()) {
      // Of which cluster one is that was not looked at, nobody knows: it may be this one.
      const ofIt = ({ backendId }: ClusterBackend): boolean =>
        (this.views.of(backendId)?.fsid ?? view.fsid) === view.fsid;
      await this.comeBack(view, clusters.filter(ofIt), dropped);
    }
  }

  private async comeBack(
    { fsid, address }: ClusterView,
    backends: readonly ClusterBackend[],
    dropped: (place: { backendId: string; pool: string }) => void,
  ): Promise<void> {
    const fence = await this.store.shutOut(fsid, address);
    const pools = backends.flatMap(({ tenantId, backendId, exports, pools: names }) =>
      names.map(pool => ({ tenantId, backendId, exports, pool })),
    );
    await Promise.all(
      pools.map(async ({ tenantId, backendId, exports, pool }) => {
        dropped({ backendId, pool });
        await exports.drop({ tenantId, pool }, { orderly: false }, unleased(AbortSignal.timeout(DROP_MS), DROP_MS));
      }),
    );
    const asked = backends.find(({ backendId }) => this.views.of(backendId)?.fsid === fsid);
    if (!asked) return;
    const { exports } = asked;
    if (!fence)
      return this.stay(fsid, `the cluster has ${address} on its blocklist, and this appliance has not put it there`);
    // The entry that is there may be another one; ours would come after it was taken off, and nobody would know whose it is.
    if (fence.isUnderWay) return this.stay(fsid, `${fence.byHost} shuts it out right now`);
    if (await exports.hasLeftovers()) return this.stay(fsid, 'connections of daemons that were killed still end');
    await exports.letIn(address, unleased(AbortSignal.timeout(LET_IN_MS), LET_IN_MS));
    await this.store.forgetShutOut(fsid, address, fence.fencedAt);
    this.said.delete(fsid);
    this.views.forget(fsid);
    log.info(
      { fsid, shutOutBy: fence.byHost },
      'this storage host serves nothing of the cluster any more, and is let in again',
    );
  }

  private stay(fsid: string, reason: string): void {
    if (this.said.get(fsid) !== reason) log.warn({ fsid, reason }, 'this storage host stays shut out of the cluster');
    this.said.set(fsid, reason);
  }
}
