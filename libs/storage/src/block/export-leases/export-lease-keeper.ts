/**
 * Which storage host exports a pool of a cluster. All of them could, and one does: by a lease in Postgres, whose clock alone counts.
 *
 *   keep      each host says every second what it could serve, and gets what it has for another term
 *   take      what nobody has said so of for a term is given to the next one that asks, with a list of who may still write
 *   shut out  that one has the cluster refuse these addresses, before it serves anything; then a daemon starts, and targets are applied as ever
 *   drop      a host that has lost a pool takes its addresses away and kills the daemon. Its guard does so at the end of the term if no worker
 *             is there to do it, or none reaches Postgres
 *   let in    a host that finds itself shut out, by this appliance, ends all that it served of the cluster, waits until nothing of it is
 *             under way, and takes itself off the list. It serves again what it gets a lease for
 *
 * A host that leaves in order closes its units and says so: its successor has nobody to shut out. While there is one host
 * alone there are no leases.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { BlockBackendKind } from '#backends/block-backend';
import { demandLeases } from '#backends/lease-demand';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { StorageHost } from '#operations/workers/storage-host';
import type { Database } from '#platform/database/database';
import { isStorageError, StorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import { type ClusterBackend, ClusterViews } from '#storage/block/export-leases/cluster-views';
import { ComeBack, DROP_MS } from '#storage/block/export-leases/come-back';
import { type HomeOfPool, LeaseStore, type SeenPool, TERM_MS } from '#storage/block/export-leases/lease-store';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('exports');

/** A host stops serving so long before another one may begin. */
const MARGIN_MS = 1_000;
/** Registrations are read again after it; seldom, where none is of a cluster. */
const REGISTERED_MS = 5_000;
const NONE_REGISTERED_MS = 15_000;
const SHUT_OUT_MS = 10_000;
/** Units are closed in it, or killed. */
const ORDERLY_MS = 2_000;

export interface KeeperOptions {
  /** Its pools are served from now on. */
  serve(place: { tenantId: string; backendId: string; pool: string }): Promise<void>;
}

type Held = HomeOfPool & { backend: ClusterBackend };

export class ExportLeaseKeeper implements PeriodicTask {
  readonly name = 'export-leases';
  readonly everyMs = 1_000;
  readonly scope = 'worker';
  readonly boundMs = 60_000;
  /** While there is no other host. */
  readonly calm = 2;
  private readonly store: LeaseStore;
  private readonly views: ClusterViews;
  private readonly cameBack: ComeBack;
  private backends: { at: number; all: ClusterBackend[] } | undefined;
  /** Pools that this host serves, by backend and pool. */
  private readonly held = new Map<string, Held>();
  /** What this host has ended, and what for: the fence of who has it. */
  private readonly dropped = new Map<string, string>();
  private readonly fencing = new Set<string>();
  private readonly obstacles = new Map<string, string>();
  /** Backends whose pools are served without leases. */
  private readonly alone = new Set<string>();
  private isLeaving = false;
  /** Ends with the round that is under way. */
  private current: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly database: Database,
    blocks: BlockDirectory,
    kindOf: (kind: string) => BlockBackendKind,
    private readonly host: StorageHost,
    private readonly options: KeeperOptions,
  ) {
    this.store = new LeaseStore(database, host.name);
    this.views = new ClusterViews(blocks, kindOf);
    this.cameBack = new ComeBack(this.store, this.views);
  }

  async run(): Promise<'calm' | undefined> {
    if (this.isLeaving) return undefined;
    const round = this.round();
    this.current = round.catch(() => {});
    return round;
  }

  private async round(): Promise<'calm' | undefined> {
    const clusters = await this.clusters();
    if (!this.host.isOneOfSeveral) {
      const isSaid = await this.serveAlone(clusters);
      await this.cameBack.run(clusters, this.forgetHeld);
      return isSaid ? 'calm' : undefined;
    }
    this.alone.clear();
    demandLeases();
    if (clusters.length === 0) return 'calm';
    for (const cluster of clusters) this.views.refresh(cluster);
    const asked = clusters.map(({ exports }) => exports.now());
    const homes = await this.store.keep(clusters.flatMap(cluster => this.seenOf(cluster)));
    const began = new Map(clusters.map(({ backendId }, at) => [backendId, asked[at]!]));
    const failures: unknown[] = [];
    await Promise.all(
      homes.map(home =>
        this.follow(home, clusters, began.get(home.backendId)!).catch(error => {
          if (!isStorageError(error)) failures.push(error);
          else
            log.warn(
              { pool: home.pool, err: error.toJSON() },
              'the export of the pool is not as its lease says; tried again',
            );
        }),
      ),
    );
    await this.cameBack.run(clusters, this.forgetHeld);
    if (failures.length > 0) throw failures[0];
    return undefined;
  }

  /** Hands over what another host can have; the rest is served without this worker, as ever. */
  async leave(worker: string): Promise<void> {
    this.isLeaving = true;
    if (!this.host.isOneOfSeveral) return;
    await Promise.race([this.current, delay(ORDERLY_MS)]);
    await Promise.all(
      [...this.held.values()].map(async held => {
        try {
          if (await this.store.hasSuccessor(held, worker)) await this.handOver(held);
          else await held.backend.exports.holdForever(held);
        } catch (error) {
          log.warn({ pool: held.pool, err: error }, 'the pool is not handed over: its lease ends by itself');
        }
      }),
    );
  }

  private async handOver(held: Held): Promise<void> {
    const key = keyOf(held);
    this.held.delete(key);
    this.dropped.set(key, held.fence);
    const isEnded = await this.drop(held, { orderly: true });
    // Of a daemon that died a moment ago, too.
    const inOrder = isEnded && !(await held.backend.exports.hasLeftovers());
    await this.store.release(held, inOrder);
    log.info({ pool: held.pool, inOrder }, 'the pool is handed over to another storage host');
  }

  private async clusters(): Promise<ClusterBackend[]> {
    const { at, all: known } = this.backends ?? { at: Number.NEGATIVE_INFINITY, all: [] };
    if (performance.now() - at < (known.length > 0 ? REGISTERED_MS : NONE_REGISTERED_MS)) return known;
    const found: RegisteredBlockBackend[] = [];
    await eachBlockBackend(this.database, async backend => {
      found.push(backend);
    });
    const all = await this.views.ofClusters(found);
    this.backends = { at: performance.now(), all };
    return all;
  }

  /** Nobody could have it instead. Said once: whoever joins must know whom to shut out. */
  private async serveAlone(clusters: readonly ClusterBackend[]): Promise<boolean> {
    for (const cluster of clusters) {
      if (this.alone.has(cluster.backendId)) continue;
      this.views.refresh(cluster);
      const view = this.views.of(cluster.backendId);
      if (!view || view.isShutOut || !this.hasAll(cluster)) continue;
      for (const pool of cluster.pools) await cluster.exports.holdForever({ tenantId: cluster.tenantId, pool });
      await this.store.keepAlone(this.seenOf(cluster));
      this.alone.add(cluster.backendId);
      this.held.clear();
      this.dropped.clear();
    }
    return clusters.every(({ backendId }) => this.alone.has(backendId));
  }

  /** It has taken them into use. */
  private hasAll({ backendId, pools }: ClusterBackend): boolean {
    const own = this.host.reach?.pools ?? [];
    return pools.every(name => own.some(one => one.backend === backendId && one.name === name));
  }

  private seenOf({ backendId, pools }: ClusterBackend): SeenPool[] {
    const view = this.views.of(backendId);
    const { pools: own = [], standby = [] } = this.host.reach ?? {};
    const isUp = (name: string): boolean =>
      [...own, ...standby].some(one => one.backend === backendId && one.name === name);
    const isLetIn = view !== undefined && !view.isShutOut && view.lacking === undefined;
    return pools.map(name => ({
      backend: backendId,
      name,
      address: view?.address ?? null,
      able: isLetIn && isUp(name),
    }));
  }

  private async follow(home: HomeOfPool, clusters: readonly ClusterBackend[], askedAt: number): Promise<void> {
    const backend = clusters.find(({ backendId }) => backendId === home.backendId)!;
    const held = { ...home, backend };
    const key = keyOf(home);
    this.tell(key, home);
    if (home.home !== this.host.name) {
      this.held.delete(key);
      if (this.dropped.get(key) === home.fence) return;
      await this.drop(held, { orderly: false });
      this.dropped.set(key, home.fence);
      return;
    }
    if (!home.renewed && home.drains) {
      if (this.dropped.get(key) !== home.fence) await this.handOver(held);
      return;
    }
    if (this.isLeaving) return;
    this.dropped.delete(key);
    if (!home.renewed || this.views.of(home.backendId)?.isShutOut) return;
    if (home.toFence.length > 0) return this.fence(held);
    await backend.exports.hold(home, askedAt + TERM_MS - MARGIN_MS);
    const before = this.held.get(key);
    this.held.set(key, held);
    if (before?.fence !== home.fence) void this.options.serve(home).catch(() => {});
  }

  /** Not waited for: other pools' leases go on meanwhile. */
  private fence(held: Held): void {
    const key = keyOf(held);
    if (this.fencing.has(key)) return;
    this.fencing.add(key);
    void this.shutOut(held)
      .catch(error => {
        const err = isStorageError(error) ? error.toJSON() : error;
        log.warn(
          { pool: held.pool, hosts: held.toFence.map(({ host }) => host), err },
          'they cannot be shut out yet; tried again',
        );
      })
      .finally(() => this.fencing.delete(key));
  }

  private async shutOut(held: Held): Promise<void> {
    const { backend, pool, toFence } = held;
    const view = this.views.of(held.backendId);
    if (!view) throw new StorageError('unavailable', 'the cluster is out of reach');
    const others = toFence.filter(({ address }) => address !== view.address);
    if (others.length < toFence.length) {
      // It had the pool before, and lost it while it was to shut out the one before.
      await this.drop(held, { orderly: false });
      if (await backend.exports.hasLeftovers())
        throw new StorageError('unavailable', 'connections of killed daemons still end');
    }
    const signal = unleased(AbortSignal.timeout(SHUT_OUT_MS), SHUT_OUT_MS);
    await this.store.noteShutOut(view.fsid, others);
    await backend.exports.shutOut([...new Set(others.map(({ address }) => address))], signal);
    if (!(await this.store.fenced(held))) return;
    log.warn(
      { pool, from: toFence.map(({ host }) => host) },
      'the pool is taken over: its former storage host is shut out of the cluster',
    );
  }

  private readonly forgetHeld = (place: { backendId: string; pool: string }): void => {
    this.held.delete(keyOf(place));
  };

  private drop({ tenantId, pool, backend }: Held, how: { orderly: boolean }): Promise<boolean> {
    const boundMs = how.orderly ? ORDERLY_MS : DROP_MS;
    return backend.exports.drop({ tenantId, pool }, how, unleased(AbortSignal.timeout(boundMs), boundMs));
  }

  private tell(key: string, { pool, obstacle }: HomeOfPool): void {
    if (obstacle === null) {
      this.obstacles.delete(key);
      return;
    }
    if (this.obstacles.get(key) !== obstacle)
      log.error({ pool, obstacle }, 'the pool is served by nobody, and cannot be taken over');
    this.obstacles.set(key, obstacle);
  }
}

const keyOf = ({ backendId, pool }: { backendId: string; pool: string }): string => `${backendId}/${pool}`;
