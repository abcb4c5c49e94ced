import { createLogger } from '#platform/logging/log';
import type { ClusterBackend } from '#storage/block/export-leases/cluster-views';

const log = createLogger('exports');

/** One that is back within it was not lost: a pool is not handed over for a cable that is put into another switch. */
const LOST_MS = 3_000;

interface Loss {
  since: number;
  reason: string;
}

/** Whether hosts can reach the portals of pools at this host. Looked at in each round. */
export class PortalLinks {
  private readonly losses = new Map<string, Loss>();

  /** lost: long enough to give a pool up that another host can serve; weak: too weak to take one over. */
  look({ backendId, exports }: ClusterBackend, pool: string): 'lost' | 'weak' | 'well' {
    const key = `${backendId}/${pool}`;
    const reason = exports.lacksLink(pool);
    const before = this.losses.get(key);
    if (reason === undefined) {
      this.losses.delete(key);
      if (before) log.info({ pool }, 'hosts can reach the pool at this storage host again');
      return 'well';
    }
    const since = before?.since ?? performance.now();
    if (before?.reason !== reason) log.warn({ pool, reason }, 'hosts cannot reach the pool at this storage host');
    this.losses.set(key, { since, reason });
    return performance.now() - since >= LOST_MS ? 'lost' : 'weak';
  }
}
