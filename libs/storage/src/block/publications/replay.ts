import type { DaemonRef, Exporter } from '#backends/exporter';
import { requireSuccess } from '#operations/accepting/operations';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';
import { type LeaseSignal, unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import type { BlockDependencies } from '#storage/block/block-dependencies';
import type { BlockCaller } from '#storage/block/block-storage';
import { eachBlockBackend } from '#storage/block/pools/block-backends';
import { NOWHERE } from '#storage/block/publications/apply-target';
import { replayTarget } from '#storage/block/publications/replay-target';
import type { BlockDirectory } from '#storage/shared/backend-directory';
import { acceptInBackground } from '#storage/shared/background-operation';
import { type Begin, submit } from '#storage/shared/submit';

const log = createLogger('exports');

/**
 * Targets live in the memory of their daemon. One that was applied to another run of it, or whose initiators changed
 * since, is applied again from Postgres, with the same identity (invariant I1): at once for a host that posts its new
 * initiators, within a round of the manager for a daemon that was restarted.
 */
export interface StaleTarget {
  volumeId: string;
  name: string;
  backendId: string;
}

const COLUMNS = `v.id AS "volumeId", v.name, v.backend_id AS "backendId"`;
const STALE_OF_HOST = sql(
  'replay_of_host',
  `SELECT ${COLUMNS} FROM trivet.publication p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.host_id = $2 AND p.state = 'applied' AND v.applied_instance IS NULL
      AND v.state = 'ready' AND v.condition IS NULL`,
);
/**
 * By the index of what was applied to which run, however many volumes are published: each of the three reads nothing but targets
 * that were not applied to this one. NOWHERE was applied to none, and needs none.
 */
const NOT_APPLIED = ['IS NULL', "> '' AND v.applied_instance < $4", '> $4']
  .map(
    which => `SELECT v.tenant_id, v.id, v.name, v.backend_id, v.applied_instance, v.state, v.condition FROM trivet.volume v
     WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = $3 AND v.tid IS NOT NULL AND v.applied_instance ${which}`,
  )
  .join(' UNION ALL ');
const STALE_OF_POOL = sql(
  'replay_of_pool',
  `SELECT ${COLUMNS}, p.published
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
  `SELECT name AS pool, portals FROM trivet.pool
    WHERE tenant_id = $1 AND backend_id = $2 AND state = 'up' AND portals <> '{}'`,
);
const LOCK = sql(
  'replay_lock',
  `SELECT (SELECT o.id FROM trivet.operation o
            WHERE o.tenant_id = $1 AND o.resource_id = $2 AND o.kind = '${replayTarget.kind}'
              AND o.state IN ('pending', 'running', 'needs_attention') LIMIT 1) AS pending
     FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'ready' FOR UPDATE`,
);

/** Whose targets they are, published or not; of any backend of the tenant, since a daemon is known by tenant and pool. */
const OWNERS = sql(
  'replay_owners',
  `SELECT ${COLUMNS}, v.state, v.target ->> 'name' AS iqn FROM trivet.volume v
    WHERE v.tenant_id = $1 AND v.tid IS NOT NULL AND v.target ->> 'name' = ANY ($2)`,
);

/** Longer than a tgtd may take to start, and than one that was left stopped gets before it is woken. */
const CALL_MS = 15_000;
/** A daemon that does not answer must not keep a dead one from being started again. */
const BACKENDS_AT_ONCE = 16;
const PORTION = 2_000;
const AT_ONCE = 16;

/**
 * Ends when each target of the host was applied as the host is now. One that somebody else applies meanwhile is joined, and
 * applied once more if that had read the host as it was before.
 */
export async function replayAndWait(parts: BlockDependencies, caller: BlockCaller, hostId: string): Promise<void> {
  const stale = () =>
    parts.database.withTenant(caller.tenantId, tx => tx.query<StaleTarget>(STALE_OF_HOST, [caller.tenantId, hostId]));
  const joined = await replayEach(parts, caller, await stale());
  if (joined.size === 0) return;
  const left = (await stale()).filter(({ volumeId }) => joined.has(volumeId));
  await replayEach(parts, caller, left);
}

/** Gives the volumes whose replay was under way already. */
async function replayEach(
  parts: BlockDependencies,
  caller: BlockCaller,
  targets: readonly StaleTarget[],
): Promise<Set<string>> {
  const [left, joined] = [[...targets], new Set<string>()];
  const replayLeft = async () => {
    for (let target = left.pop(); target; target = left.pop()) {
      const { value, operation } = await accept(parts, caller, target);
      requireSuccess(operation, `volume ${target.name}`);
      if (value === 'joined') joined.add(target.volumeId);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, replayLeft));
  return joined;
}

function accept(parts: BlockDependencies, caller: BlockCaller, target: StaleTarget) {
  // It changes nothing: what it follows is in the audit log.
  const asker = { ...caller, backendId: target.backendId, observer: undefined };
  return submit({ ...parts, caller: asker }, async (tx, begin) => {
    const join = await beginReplay(tx, begin, caller.tenantId, target);
    return { value: join ? ('joined' as const) : undefined, join };
  });
}

/** For the background: nobody waits. */
export function acceptReplay(database: Database, tenantId: string, target: StaleTarget): Promise<void> {
  return acceptInBackground(database, { tenantId, backendId: target.backendId }, async (tx, begin) => {
    await beginReplay(tx, begin, tenantId, target);
  });
}

/** The one that is under way already, if there is one. */
async function beginReplay(
  tx: Tx,
  begin: Begin,
  tenantId: string,
  { volumeId, name }: StaleTarget,
): Promise<string | undefined> {
  const [row] = await tx.query<{ pending: string | null }>(LOCK, [tenantId, volumeId]);
  if (!row || row.pending) return row?.pending ?? undefined;
  await begin(replayTarget, { resourceId: volumeId, resourceName: name, request: { volumeId } });
  return undefined;
}

/** Keeps the daemons of all pools that have publications running, and their targets as Postgres says. */
export class ExportSupervisor implements PeriodicTask {
  readonly name = 'exports';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly boundMs = 900_000;
  readonly after = 'pools';
  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    await eachBlockBackend(
      this.database,
      async ({ tenantId, backendId }) => {
        if (signal.aborted) return;
        const pools = await this.database.withTenant(tenantId, tx =>
          tx.query<Omit<DaemonRef, 'tenantId'>>(EXPORTING_POOLS, [tenantId, backendId]),
        );
        const kept = await Promise.allSettled(
          pools.map(pool => this.keepUnlessSilent(backendId, { tenantId, ...pool }, signal)),
        );
        const defect = kept.find(({ status }) => status === 'rejected');
        if (defect) throw (defect as PromiseRejectedResult).reason;
      },
      { atOnce: BACKENDS_AT_ONCE },
    );
  }

  private async keepUnlessSilent(backendId: string, daemon: DaemonRef, signal: AbortSignal): Promise<void> {
    try {
      await this.keep(backendId, daemon, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof StorageError)) throw error;
      log.warn({ pool: daemon.pool, err: error.toJSON() }, 'exports cannot be kept now; the next round tries again');
    }
  }

  private async keep(backendId: string, daemon: DaemonRef, signal: AbortSignal): Promise<void> {
    const { tenantId } = daemon;
    const { exporter } = await this.blocks.open(tenantId, backendId);
    const bounded = () => unleased(AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]), CALL_MS);
    const { instance } = await exporter.ensureDaemon(daemon, bounded());
    await this.mend(daemon, exporter, bounded);
    const found = await this.database.withTenant(tenantId, tx =>
      tx.query<StaleTarget & { published: boolean }>(STALE_OF_POOL, [
        tenantId,
        backendId,
        daemon.pool,
        instance,
        PORTION,
      ]),
    );
    const stale = found.filter(({ published }) => published);
    await this.leaveAlone(
      tenantId,
      found.filter(({ published }) => !published),
    );
    if (stale.length === 0) return;
    log.info({ pool: daemon.pool, targets: stale.length, instance }, 'targets are applied again');
    for (const target of stale) {
      if (signal.aborted) return;
      await acceptReplay(this.database, tenantId, target);
    }
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

  /** What a worker changed after its successor is made again as Postgres says; what nobody has any more goes. */
  private async mend(daemon: DaemonRef, exporter: Exporter, bounded: () => LeaseSignal): Promise<void> {
    const { tenantId } = daemon;
    const suspects = await exporter.suspectTargets(daemon, bounded());
    if (suspects.length === 0) return;
    const names = suspects.map(({ iqn }) => iqn);
    const owners = await this.database.withTenant(tenantId, tx =>
      tx.query<StaleTarget & { iqn: string; state: string }>(OWNERS, [tenantId, names]),
    );
    for (const { tid, iqn, fence } of suspects) {
      const owner = owners.find(row => row.iqn === iqn);
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
  }
}
