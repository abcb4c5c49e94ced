import type { LeaseSignal } from '#platform/lease-signal';

/**
 * What pools of a cluster have that any storage host may export, one at a time: the host's own hold on a pool, and the cluster's
 * way to shut a host out. Who may hold a pool is decided by a lease in Postgres; nothing here asks for it.
 */
export interface ClusterExports {
  /** This host as its cluster sees it. Rejects while the cluster is out of reach. */
  look(signal: AbortSignal): Promise<ClusterView>;

  /**
   * Shuts out whoever comes from these addresses: verified, and before it resolves every later request from here is answered by a
   * cluster that refuses them. A repeat is harmless.
   */
  shutOut(addresses: readonly string[], signal: LeaseSignal): Promise<void>;

  /** Ends that for this host's own address. Only after `drop` for all that it served there: see `hasLeftovers`. */
  letIn(address: string, signal: LeaseSignal): Promise<void>;

  /** Why hosts cannot reach the portals of the pool at this host, for people; undefined: they can, as far as it knows. */
  lacksLink(pool: string): string | undefined;

  /** What processes that were killed have written, and the kernel still sends to somebody. */
  hasLeftovers(): Promise<boolean>;

  /** The clock of `hold`, in ms: of the host, and nobody sets it. */
  now(): number;

  /**
   * This host serves the pool until `untilMs` of `now`, and no longer, whatever becomes of this process: a process of its own sees
   * to that. Addresses that move with the pool are announced once more. Who asked for it at `askedAt`, before another process of this host
   * gave it up, has no effect.
   */
  hold(pool: ClusterPool, untilMs: number, askedAt?: number): Promise<void>;

  /** There is no other host: no bound, and nobody who ends it. */
  holdForever(pool: ClusterPool): Promise<void>;

  /**
   * This host does not serve it: resolves when no daemon is there any more and the addresses are gone. `orderly`: units are closed before,
   * as far as that goes at once; else it is killed. True: it ended in order, or there was none.
   */
  drop(pool: ClusterPool, how: { orderly: boolean }, signal: LeaseSignal): Promise<boolean>;

  /** Those of the pool's portals whose addresses this host has now. */
  portalsHere(pool: string): string[];

  /**
   * Another host serves it: initiators that come to this host's own portals of the pool are sent there from now on, by this process. Undefined:
   * they are not, and when it resolves the portals are free. A repeat is harmless, and opens what somebody else had open before.
   */
  sendOn(pool: ClusterPool, guide: PoolGuide | undefined): Promise<void>;
}

/** Asked for each initiator that comes: answer in ms. */
export interface PoolGuide {
  /** Portals of the host that serves the pool now; none: nobody does. */
  servedAt(): Promise<readonly string[]>;
  /** The names of targets that the initiator has at that daemon of the pool. */
  targetsOf(initiator: string, daemon: { nth: number; of: number }): Promise<readonly string[]>;
}

export interface ClusterPool {
  tenantId: string;
  pool: string;
}

export interface ClusterView {
  /** Of the cluster. */
  fsid: string;
  /** Of this host, without a port. */
  address: string;
  /** The cluster refuses it. */
  isShutOut: boolean;
  /** What this host's user lacks to do all of the above, for people. */
  lacking?: string;
}
