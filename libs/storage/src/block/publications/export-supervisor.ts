import type { DaemonRef, Exporter } from '#backends/exporter';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import { eachBlockBackend } from '#storage/block/pools/block-backends';
import { daemonIn, daemonsOfPool, type PortalSets } from '#storage/block/pools/pool-daemons';
import { NOWHERE } from '#storage/block/publications/apply-target';
import { acceptReplay, type StaleTarget, TARGET_COLUMNS } from '#storage/block/publications/replay';
import { replayTarget } from '#storage/block/publications/replay-target';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('exports');

/**
 * By the index of what was applied to which run, however many volumes are published: each of the three reads nothing but targets
 * that were not applied to this one. NOWHERE was applied to none, and needs none.
 */
const NOT_APPLIED = ['IS NULL', "> '' AND v.applied_instance < $4", '> $4']
  .map(
    which => `SELECT v.tenant_id, v.id, v.name, v.backend_id, v.applied_instance, v.state, v.condition FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND v.tid IS NOT NULL AND v.applied_instance ${which}
       AND ($6::int = 1 OR ${daemonIn('$6')} = $7)`,
  )
  .join(' UNION ALL ');
const STALE_OF_POOL = sql(
  'replay_of_pool',
  `SELECT ${TARGET_COLUMNS}, p.published
     FROM (${NOT_APPLIED}) AS v,
          LATERAL (SELECT coalesce(bool_or(p.state = 'applied'), false) AS applied, count(*) > 0 AS published
                     FROM trivet.publication p WHERE p.tenant_id = $1 AND p.volume_id = v.id) AS p
    WHERE NOT p.published AND v.applied_instance IS NULL
       OR p.applied AND v.state = 'ready' AND v.condition IS NULL
      AND NOT EXISTS (SELECT FROM trivet.operation o
                       WHERE o.tenant_id = $1 AND o.resource_id = v.id AND o.kind = '${replayTarget.kind}'
                         AND o.state IN ('pending', 'running', 'needs_attention'))
    LIMIT $5`,
);
const LOCK_UNPUBLISHED = sql(
  'replay_lock_unpublished',
  'SELECT id FROM trivet.volume WHERE tenant_id = $1 AND id = ANY ($2) ORDER BY id FOR UPDATE SKIP LOCKED',
);
/** A statement of its own: what the locking one saw may be older. */
const NEEDS_NONE = sql(
  'replay_needs_none',
  `UPDATE trivet.volume v SET applied_instance = '${NOWHERE}'
    WHERE v.tenant_id = $1 AND v.id = ANY ($2) AND v.tid IS NOT NULL AND v.applied_instance IS NULL
      AND NOT EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = $1 AND p.volume_id = v.id)`,
);
/** With and without publications: a portal that cannot be opened must be known before a host waits for it. */
const EXPORTING_POOLS = sql(
  'replay_exporting_pools',
  `SELECT name AS pool, portals, portal_sets AS "portalSets" FROM trivet.pool
    WHERE tenant_id = $1 AND backend_id = $2 AND state = 'up' AND portals <> '{}'
      AND NOT EXISTS (SELECT FROM trivet.pool_home h
                       WHERE h.tenant_id = $1 AND h.backend_id = $2 AND h.pool = pool.name
                         AND (h.host <> $3 OR h.to_fence <> '[]'))`,
);
/**
 * Whose targets they are, published or not; of any backend of the tenant, since a daemon is known by tenant and pool. here: this daemon
 * has them, and not another one of the pool, which they were given when a host got them anew.
 */
const OWNERS = sql(
  'replay_owners',
  `SELECT ${TARGET_COLUMNS}, v.state, v.target ->> 'name' AS iqn, ${daemonIn('$3')} = $4::int AS here FROM trivet.volume v
    WHERE v.tenant_id = $1 AND v.tid IS NOT NULL AND v.target ->> 'name' = ANY ($2)`,
);
/** What the host before has said of it was true of that one. This one saw it a moment ago, and looks again within seconds. */
const TAKEN_OVER = sql(
  'replay_pool_taken_over',
  `UPDATE trivet.pool SET state = 'up', reason = NULL
    WHERE tenant_id = $1 AND backend_id = $2 AND name = $3 AND state = 'down'
      AND EXISTS (SELECT FROM trivet.pool_home h
                   WHERE h.tenant_id = $1 AND h.backend_id = $2 AND h.pool = $3 AND h.host = $4 AND h.to_fence = '[]')`,
);
/** What failed at the host before is due at once, and not after the back-off that it has earned there: up to half a minute. */
const DUE = sql(
  'replay_pool_due',
  `UPDATE trivet.operation o SET next_run_at = now()
    WHERE o.tenant_id = $1 AND o.backend_id = $2 AND o.pool = $3 AND o.finished_at IS NULL AND o.state = 'pending'
      AND o.next_run_at > now() AND o.next_run_at < 'infinity'
      AND NOT EXISTS (SELECT FROM trivet.operation_slot s
                       WHERE s.tenant_id = $1 AND s.operation_id = o.id AND s.busy_until > now())`,
);

/** Longer than a tgtd may take to start, and than one that was left stopped gets before it is woken. */
const CALL_MS = 15_000;
const BACKENDS_AT_ONCE = 16;
const DAEMONS_AT_ONCE = 16;
/** Whoever takes longer is waited for beside the others, and nobody's turn comes later for it. */
const PATIENCE_MS = 1_000;
const PORTION = 2_000;

interface ExportingPool {
  pool: string;
  portals: string[];
  portalSets: PortalSets;
}

interface Kept {
  backendId: string;
  daemon: DaemonRef;
}

const keyOf = ({ backendId, daemon }: Kept): string => `${backendId}/${daemon.pool}/${daemon.nth}`;

/**
 * Keeps the daemons of all pools that have publications running, and their targets as Postgres says. A round ends although some
 * daemon does not answer: the next ones leave that one alone until it has, and ask it last from then on. So one that died is back
 * within some seconds, whatever becomes of the others.
 */
export class ExportSupervisor implements PeriodicTask {
  readonly name = 'exports';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly after = 'pools';
  /** A daemon that died is to be back within 10 s, its targets included. */
  readonly calm = 2.5;
  /** Those of earlier rounds that have not answered yet. */
  private readonly asked = new Map<string, Promise<boolean>>();
  /** Those that did not answer in time, the last time. */
  private readonly slow = new Set<string>();
  /** Of the round that was begun last: who is left over from one before heeds it, too. */
  private signal: AbortSignal = new AbortController().signal;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    private readonly patienceMs = PATIENCE_MS,
    /** Whose pools alone it looks after; absent: all. */
    private readonly host?: string,
  ) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    this.signal = signal;
    const found = (await this.all()).filter(one => !this.asked.has(keyOf(one)));
    const inTurn = [false, true].flatMap(slow => found.filter(one => this.slow.has(keyOf(one)) === slow)).values();
    const defects: unknown[] = [];
    let isCalm = true;
    const next = async (): Promise<void> => {
      for (const one of inTurn)
        if (!signal.aborted && !(await this.begin(one, defect => defects.push(defect)))) isCalm = false;
    };
    await Promise.all(Array.from({ length: DAEMONS_AT_ONCE }, next));
    if (defects.length > 0) throw defects[0];
    return isCalm && this.asked.size === 0 ? 'calm' : undefined;
  }

  /** One that this host has just begun to serve: at once. @param how `sees`: it has looked at the cluster a moment ago */
  async serve(tenantId: string, backendId: string, pool: string, { sees }: { sees: boolean }): Promise<void> {
    const place = [tenantId, backendId, pool];
    if (sees) await this.database.withTenant(tenantId, tx => tx.query(TAKEN_OVER, [...place, this.host ?? null]));
    await this.database.engine(DUE, place);
    const found = (await this.daemons(tenantId, backendId)).filter(({ daemon }) => daemon.pool === pool);
    await Promise.all(found.filter(one => !this.asked.has(keyOf(one))).map(one => this.begin(one, () => {})));
  }

  private async daemons(tenantId: string, backendId: string): Promise<Kept[]> {
    const pools = await this.database.withTenant(tenantId, tx =>
      tx.query<ExportingPool>(EXPORTING_POOLS, [tenantId, backendId, this.host ?? null]),
    );
    return pools.flatMap(pool => daemonsOfPool(tenantId, pool).map(daemon => ({ backendId, daemon })));
  }

  private async all(): Promise<Kept[]> {
    const found: Kept[] = [];
    await eachBlockBackend(
      this.database,
      async ({ tenantId, backendId }) => {
        found.push(...(await this.daemons(tenantId, backendId)));
      },
      { atOnce: BACKENDS_AT_ONCE },
    );
    return found;
  }

  /** Resolves when it is kept, or takes too long to be waited for. True: all was as it should be. */
  private async begin(one: Kept, broken: (defect: unknown) => void): Promise<boolean> {
    const key = keyOf(one);
    let timer: NodeJS.Timeout | undefined;
    const kept = this.keepUnlessSilent(one, broken).finally(() => {
      clearTimeout(timer);
      this.asked.delete(key);
    });
    this.asked.set(key, kept);
    const late = new Promise<false>(resolve => {
      timer = setTimeout(() => {
        this.slow.add(key);
        resolve(false);
      }, this.patienceMs);
    });
    this.slow.delete(key);
    return Promise.race([kept, late]);
  }

  private async keepUnlessSilent(one: Kept, broken: (defect: unknown) => void): Promise<boolean> {
    try {
      return await this.keep(one);
    } catch (error) {
      if (this.signal.aborted) return false;
      const { pool } = one.daemon;
      if (error instanceof StorageError)
        log.warn({ pool, err: error.toJSON() }, 'exports cannot be kept now; the next round tries again');
      else {
        log.error({ pool, err: error }, 'defect: exports cannot be kept');
        broken(error);
      }
      return false;
    }
  }

  private async keep({ backendId, daemon }: Kept): Promise<boolean> {
    const { tenantId } = daemon;
    const { exporter } = await this.blocks.open(tenantId, backendId);
    const bounded = () => unleased(AbortSignal.any([this.signal, AbortSignal.timeout(CALL_MS)]), CALL_MS);
    const { instance } = await exporter.ensureDaemon(daemon, bounded());
    const isMended = await this.mend(daemon, exporter, bounded);
    const found = await this.database.withTenant(tenantId, tx =>
      tx.query<StaleTarget & { published: boolean }>(STALE_OF_POOL, [
        tenantId,
        backendId,
        daemon.pool,
        instance,
        PORTION,
        daemon.of,
        daemon.nth,
      ]),
    );
    const stale = found.filter(({ published }) => published);
    await this.leaveAlone(
      tenantId,
      found.filter(({ published }) => !published),
    );
    if (stale.length === 0) return !isMended && found.length < PORTION;
    log.info({ pool: daemon.pool, targets: stale.length, instance }, 'targets are applied again');
    for (const target of stale) {
      if (this.signal.aborted) return false;
      await acceptReplay(this.database, tenantId, target);
    }
    return false;
  }

  /** Unpublished by a release that did not say so, they would be found in each round. */
  private async leaveAlone(tenantId: string, unpublished: readonly StaleTarget[]): Promise<void> {
    if (unpublished.length === 0) return;
    const ids = unpublished.map(({ volumeId }) => volumeId);
    await this.database.withTenant(tenantId, async tx => {
      const locked = await tx.query<{ id: string }>(LOCK_UNPUBLISHED, [tenantId, ids]);
      await tx.query(NEEDS_NONE, [tenantId, locked.map(({ id }) => id)]);
    });
  }

  /** What a worker changed after its successor is made again as Postgres says; what nobody has any more goes. Whether there was such. */
  private async mend(daemon: DaemonRef, exporter: Exporter, bounded: () => LeaseSignal): Promise<boolean> {
    const { tenantId } = daemon;
    const suspects = await exporter.suspectTargets(daemon, bounded());
    if (suspects.length === 0) return false;
    const names = suspects.map(({ iqn }) => iqn);
    const owners = await this.database.withTenant(tenantId, tx =>
      tx.query<StaleTarget & { iqn: string; state: string; here: boolean }>(OWNERS, [
        tenantId,
        names,
        daemon.of ?? 1,
        daemon.nth ?? 0,
      ]),
    );
    for (const { tid, iqn, fence } of suspects) {
      const owner = owners.find(row => row.iqn === iqn && row.here);
      log.warn(
        { target: iqn, volume: owner?.name },
        'its last change was by a worker that had been overtaken, or died in it',
      );
      try {
        if (owner?.state === 'ready') await acceptReplay(this.database, tenantId, owner);
        // A deletion that is under way removes it itself.
        else if (!owner) await exporter.removeTarget({ daemon, tid, iqn }, { force: true }, fence, bounded());
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
        log.warn({ target: iqn, err: error.toJSON() }, 'it cannot be put right now; the next round tries again');
      }
    }
    return true;
  }
}
