/**
 * Which storage host exports a pool of a cluster. All of them could, and one does: by a lease in Postgres, whose clock alone counts.
 *
 *   keep      each host says every second what it could serve, and gets what it has for another term
 *   take      what nobody has said so of for a term is given to the next one that asks, with a list of who may still write
 *   shut out  that one has the cluster refuse these addresses, before it serves anything; then a daemon starts, and targets are applied as ever
 *   drop      a host that has lost a pool takes its addresses away and kills the daemon. Its guard does so at the end of the term if no worker
 *             is there to do it, or none reaches Postgres
 *   send on   initiators that come to a host for what another one has are told where that is
 *   let in    a host that finds itself shut out, by this appliance, ends all that it served of the cluster, waits until nothing of it is
 *             under way, and takes itself off the list. It serves again what it gets a lease for
 *
 * A host that leaves in order closes its units and says so: its successor has nobody to shut out. So does one that is being drained,
 * or whose portals hosts cannot reach, if another one can have the pool. While there is one host
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
import { takeoversTotal } from '#platform/metrics/takeover-metrics';
import { type ClusterBackend, ClusterViews } from '#storage/block/export-leases/cluster-views';
import { ComeBack, DROP_MS } from '#storage/block/export-leases/come-back';
import { type HomeOfPool, LeaseStore, type SeenPool, TERM_MS } from '#storage/block/export-leases/lease-store';
import { ServedPool } from '#storage/block/export-leases/pool-guide';
import { PortalLinks } from '#storage/block/export-leases/portal-links';
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
/** An answer that comes later renews nothing any more that was not over. */
const KEEP_MS = 2_500;
/** After a gap in what this host says it takes nothing for as long: the others say first what they have. */
const STEADY_MS = 3_000;
/** Served without a worker, by who leaves and has no successor. */
const KEPT_MS = 600_000;
const COMING_BACK = 'coming back';

export interface KeeperOptions {
  /** Its pools are served from now on. */
  serve(place: { tenantId: string; backendId: string; pool: string }, how: { sees: boolean }): Promise<void>;
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
  private readonly links = new PortalLinks();
  private backends: { at: number; all: ClusterBackend[] } | undefined;
  /** Pools that this host serves, by backend and pool. */
  private readonly held = new Map<string, Held>();
  /** What this host has ended, and what for: the fence of who has it. */
  private readonly dropped = new Map<string, string>();
  /** To pools that other hosts serve. */
  private readonly guides = new Map<string, ServedPool>();
  /** Pools, and the way back into clusters, that something is done for beside the rounds: none of them is held meanwhile. */
  private readonly busy = new Set<string>();
  private readonly obstacles = new Map<string, string>();
  /** When it was kept last, and since when without a gap. */
  private kept = { last: Number.NEGATIVE_INFINITY, since: Number.POSITIVE_INFINITY };
  /** Pools that are served without leases. */
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
    for (const cluster of clusters) if (this.host.isOneOfSeveral || !this.isAlone(cluster)) this.views.refresh(cluster);
    if (this.cameBack.isDue(clusters))
      this.beside(COMING_BACK, 'it cannot come back to the cluster yet', () =>
        this.cameBack.run(clusters, place => this.held.delete(keyOf(place))),
      );
    if (!this.host.isOneOfSeveral) {
      for (const cluster of clusters) await this.serveAlone(cluster);
      return clusters.every(cluster => this.isAlone(cluster)) ? 'calm' : undefined;
    }
    this.alone.clear();
    demandLeases();
    if (clusters.length === 0) return 'calm';
    const askedAt = new Map(clusters.map(({ backendId, exports }) => [backendId, exports.now()]));
    const homes = await this.keep(clusters);
    for (const { takenWhy } of homes) if (takenWhy !== null) takeoversTotal.inc({ reason: takenWhy });
    const failures: unknown[] = [];
    await Promise.all(
      homes.map(home => {
        const backend = clusters.find(({ backendId }) => backendId === home.backendId)!;
        return this.follow({ ...home, backend }, askedAt.get(home.backendId)!).catch(error => {
          if (!isStorageError(error)) failures.push(error);
          else log.warn({ pool: home.pool, err: error.toJSON() }, 'the pool cannot be held; tried again');
        });
      }),
    );
    if (failures.length > 0) throw failures[0];
    return undefined;
  }

  private async keep(clusters: readonly ClusterBackend[]): Promise<HomeOfPool[]> {
    const now = performance.now();
    const { last, since } = this.kept;
    const isSteady = now - last < STEADY_MS && now - since >= STEADY_MS;
    const pools = clusters.flatMap(cluster => this.seenOf(cluster, isSteady));
    const late = delay(KEEP_MS, undefined, { ref: false }).then(() => {
      throw new StorageError('timeout', 'PostgreSQL did not answer in time: leases of exports are not renewed');
    });
    const homes = await Promise.race([this.store.keep(pools), late]);
    this.kept = { last: now, since: now - last < STEADY_MS ? since : now };
    return homes;
  }

  /** Hands over what another host can have; the rest is served without this worker for a while. */
  async leave(worker: string): Promise<void> {
    this.isLeaving = true;
    if (!this.host.isOneOfSeveral) return;
    await Promise.race([this.current, delay(ORDERLY_MS)]);
    await Promise.all(
      [...this.held.values()].map(async held => {
        try {
          const until = held.backend.exports.now() + KEPT_MS - MARGIN_MS;
          const how = await this.store.leave(held, worker, KEPT_MS);
          if (how === 'successor') await this.handOver(held);
          if (how === 'kept') await held.backend.exports.hold(held, until);
        } catch (error) {
          log.warn({ pool: held.pool, err: error }, 'the pool is not handed over: its lease ends by itself');
        }
      }),
    );
  }

  private async handOver(held: Held): Promise<void> {
    const key = keyOf(held);
    this.held.delete(key);
    const isEnded = await this.drop(held, { orderly: true });
    // Of a daemon that died a moment ago, too.
    const inOrder = isEnded && !(await held.backend.exports.hasLeftovers());
    await this.store.release(held, inOrder);
    this.dropped.set(key, held.fence);
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

  /** Nobody could have it instead. Said once of each pool: whoever joins must know whom to shut out. */
  private async serveAlone({ tenantId, backendId, exports, pools }: ClusterBackend): Promise<void> {
    const view = this.views.of(backendId);
    if (!view || view.isShutOut || this.busy.has(COMING_BACK)) return;
    for (const pool of pools) {
      const key = keyOf({ backendId, pool });
      if (this.alone.has(key) || !isIn(this.host.reach?.pools, backendId, pool)) continue;
      await exports.sendOn({ tenantId, pool }, undefined);
      await exports.holdForever({ tenantId, pool });
      await this.store.keepAlone([{ backend: backendId, name: pool, address: view.address }]);
      this.alone.add(key);
      this.held.delete(key);
      this.dropped.delete(key);
    }
  }

  /** All of it that is here. */
  private isAlone({ backendId, pools }: ClusterBackend): boolean {
    return pools.every(
      pool => this.alone.has(keyOf({ backendId, pool })) || !isIn(this.host.reach?.pools, backendId, pool),
    );
  }

  private seenOf(cluster: ClusterBackend, isSteady: boolean): SeenPool[] {
    const { backendId, pools } = cluster;
    const view = this.views.of(backendId);
    const { pools: own, standby } = this.host.reach ?? {};
    const isLetIn = view !== undefined && !view.isShutOut && !this.busy.has(COMING_BACK);
    return pools.map(name => {
      const link = this.links.look(cluster, name);
      const isThere = isLetIn && (isIn(own, backendId, name) || isIn(standby, backendId, name));
      const lacks = isThere ? (link === 'lost' ? 'link' : null) : 'cluster';
      const takes = isThere && isSteady && view.lacking === undefined && link === 'well';
      return { backend: backendId, name, address: view?.address ?? null, able: lacks === null, takes, lacks };
    });
  }

  private async follow(held: Held, askedAt: number): Promise<void> {
    const key = keyOf(held);
    this.tell(key, held);
    if (this.busy.has(key)) return;
    const view = this.views.of(held.backendId);
    if (held.home !== this.host.name) {
      this.held.delete(key);
      if (this.dropped.get(key) !== held.fence)
        this.beside(key, 'it cannot be dropped yet', async () => {
          await this.drop(held, { orderly: false });
          this.dropped.set(key, held.fence);
        });
      else if (!this.isLeaving) await held.backend.exports.sendOn(held, this.guideOf(held));
      return;
    }
    if (this.isLeaving) return;
    await held.backend.exports.sendOn(held, undefined);
    if (!held.renewed && (held.drains || this.links.look(held.backend, held.pool) === 'lost')) {
      if (this.dropped.get(key) !== held.fence)
        this.beside(key, 'it cannot be handed over yet', () => this.handOver(held));
      return;
    }
    if (view && held.address !== null && view.address !== held.address)
      return this.beside(key, 'it cannot be served from another address yet', () => this.readdress(held, view.address));
    this.dropped.delete(key);
    if (!held.renewed || view?.isShutOut || this.busy.has(COMING_BACK)) return;
    if (held.toFence.length > 0)
      return this.beside(key, `${held.toFence.map(({ host }) => host).join(', ')} cannot be shut out yet`, () =>
        this.shutOut(held),
      );
    await held.backend.exports.hold(held, askedAt + TERM_MS - MARGIN_MS, askedAt);
    const before = this.held.get(key);
    this.held.set(key, held);
    if (before?.fence === held.fence) return;
    // Who has not seen the cluster lately knows no better than the host before.
    void this.options
      .serve(held, { sees: view !== undefined })
      .catch(err => log.warn({ pool: held.pool, err }, 'what the pool has is not served at once'));
  }

  /** Not waited for: other pools' leases go on meanwhile. One thing at a time for each. */
  private beside(key: string, refusal: string, work: () => Promise<void>): void {
    if (this.busy.has(key)) return;
    this.busy.add(key);
    void work()
      .catch(error => {
        const err = isStorageError(error) ? error.toJSON() : error;
        log.warn({ of: key, reason: refusal, err }, 'a pool of a cluster waits; tried again');
      })
      .finally(() => this.busy.delete(key));
  }

  private async shutOut(held: Held): Promise<void> {
    const { backend, pool, toFence } = held;
    const view = this.views.of(held.backendId);
    if (!view) throw new StorageError('unavailable', 'the cluster is out of reach');
    const others = toFence.filter(({ address }) => address !== view.address);
    // It had the pool before, and lost it while it was to shut out the one before; or has got another name.
    if (others.length < toFence.length) await this.end(held);
    const signal = unleased(AbortSignal.timeout(SHUT_OUT_MS), SHUT_OUT_MS);
    await this.store.noteShutOut(view.fsid, others);
    await backend.exports.shutOut([...new Set(others.map(({ address }) => address))], signal);
    if (!(await this.store.fenced(held))) return;
    log.warn(
      { pool, from: toFence.map(({ host }) => host) },
      'the pool is taken over: its former storage host is shut out of the cluster',
    );
  }

  /** Whoever shuts this host out goes by the address that its daemons came from. */
  private async readdress(held: Held, address: string): Promise<void> {
    await this.end(held);
    await this.store.readdressed(held, address);
    log.warn({ pool: held.pool, from: held.address, to: address }, 'the cluster sees this storage host elsewhere now');
  }

  /** Nothing of it can come any more. */
  private async end(held: Held): Promise<void> {
    this.held.delete(keyOf(held));
    await this.drop(held, { orderly: false });
    if (await held.backend.exports.hasLeftovers())
      throw new StorageError('unavailable', 'connections of killed daemons still end');
  }

  private guideOf(held: Held): ServedPool {
    const key = keyOf(held);
    const known = this.guides.get(key) ?? new ServedPool(this.database, held);
    this.guides.set(key, known);
    return known;
  }

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

const isIn = (pools: readonly { backend: string; name: string }[] = [], backendId: string, name: string): boolean =>
  pools.some(one => one.backend === backendId && one.name === name);
