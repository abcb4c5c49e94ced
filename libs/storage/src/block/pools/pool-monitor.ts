import { dirname } from 'node:path';
import type { BlockBackendKind, PoolConfig, PoolStatus } from '#backends/block-backend';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { StorageHost } from '#operations/workers/storage-host';
import type { Reach } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { aboutPool, StorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import { AbsentPools } from '#storage/block/pools/absent-pools';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import { claimPool, isDraining } from '#storage/block/pools/pool-homes';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('pools');

const INSPECT_MS = 5_000;

const PUT = sql(
  'pool_put',
  `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, uuid, portals, without_chap, state, reason, clone,
                            total_bytes, used_bytes, portal_sets, checked_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now())
   ON CONFLICT (tenant_id, backend_id, name) DO UPDATE
      SET position = excluded.position, uuid = coalesce(pool.uuid, excluded.uuid), portals = excluded.portals, portal_sets = excluded.portal_sets,
          without_chap = excluded.without_chap, state = excluded.state, reason = excluded.reason,
          clone = CASE excluded.state WHEN 'up' THEN excluded.clone ELSE pool.clone END,
          total_bytes = CASE excluded.state WHEN 'up' THEN excluded.total_bytes ELSE pool.total_bytes END,
          used_bytes = CASE excluded.state WHEN 'up' THEN excluded.used_bytes ELSE pool.used_bytes END,
          checked_at = now()
   RETURNING (SELECT state FROM trivet.pool WHERE tenant_id = $1 AND backend_id = $2 AND name = $3) AS before`,
);

/** As an open circuit's end does: what waited for the pool is due at once, and not after the back-off that it had earned. */
const RELEASE = sql(
  'pool_release',
  `UPDATE trivet.operation SET next_run_at = now()
    WHERE tenant_id = $1 AND backend_id = $2 AND state = 'pending' AND next_run_at > now()
      AND error ->> 'resource' = $3 AND error ->> 'kind' IN ('unavailable', 'timeout')
      AND NOT EXISTS (SELECT FROM trivet.operation_slot s
                       WHERE s.tenant_id = $1 AND s.operation_id = operation.id AND s.busy_until > now())`,
);
/** Looks are counted by file system: shares of a dead one cost one thread, and one look's time. */
const BACKENDS_AT_ONCE = 16;

/**
 * Writes down what each pool says of itself: accepting a volume looks there, and asks no backend. A pool whose folder is
 * empty and has no row yet is taken into use; one that had a marker before and has none now is down (invariant F2).
 * Of several hosts each looks after its own: the first one that finds a pool's marker is its home from then on.
 */
export class PoolMonitor implements PeriodicTask {
  readonly name = 'pools';
  readonly everyMs = 5_000;
  readonly scope = 'worker';
  readonly boundMs = 900_000;
  /** What the round that is under way has found. */
  private reach: Reach = noReach();
  private absent = new AbsentPools();
  private isDraining = false;
  /** Pools of other hosts that are here as well: told once. */
  private readonly contested = new Set<string>();
  private isFirst = true;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    private readonly kindOf: (kind: string) => BlockBackendKind,
    private readonly host?: StorageHost,
    /** Ends the process: another host has a pool that this one would take for its own. */
    private readonly refuse: (reason: string) => void = () => {},
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    this.reach = noReach();
    this.absent = new AbsentPools();
    this.isDraining = this.host !== undefined && (await isDraining(this.database, this.host.name));
    await eachBlockBackend(
      this.database,
      async backend => {
        if (signal.aborted) return;
        try {
          await this.look(backend, signal);
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          log.warn({ backendId: backend.backendId, err: error.toJSON() }, 'pools cannot be looked at');
        }
      },
      { atOnce: BACKENDS_AT_ONCE, sharedFirst: true },
    );
    if (signal.aborted) return;
    if (this.host) {
      this.host.reach = { ...this.reach, absent: this.absent.list() };
      // Another one that starts now sees what is here.
      if (this.isFirst) await this.host.beat();
    }
    this.isFirst = false;
  }

  private async look(backend: RegisteredBlockBackend, signal: AbortSignal): Promise<void> {
    const { tenantId, backendId, kind, config } = backend;
    const store = await this.blocks.open(tenantId, backendId);
    const { volumes } = store;
    const { exporter } = config as { exporter?: { kind?: string } };
    const blockKind = this.kindOf(kind);
    const parsed = blockKind.parseConfig(config);
    const configured = blockKind.pools(parsed);
    const bounded = () => AbortSignal.any([signal, AbortSignal.timeout(INSPECT_MS)]);
    const seen = await volumes.inspectPools(bounded());
    for (const [position, pool] of configured.entries()) {
      let status = seen.find(({ name }) => name === pool.name);
      if (!status) continue;
      if (status.state === 'up' && blockKind.isOfCluster) addTo(this.reach.clusters, dirname(pool.path));
      const { uuid: known, home } = await this.known(tenantId, backendId, pool.name);
      // Who serves it is decided by leases (ADR 40).
      if (home !== undefined && blockKind.isOfCluster && this.isElsewhere(pool, home)) {
        if (status.state !== 'up' || status.uuid !== known) continue;
        this.reach.standby.push({ backend: backendId, name: pool.name });
        // So that others know where to send initiators from the moment in which it serves.
        for (const portal of store.cluster?.portalsHere(pool.name) ?? []) addTo(this.reach.portals, portal);
        continue;
      }
      if (this.isElsewhere(pool, home)) {
        if (status.state === 'down' || status.uuid !== known || !(await this.takeOver(backend, pool))) continue;
      }
      if (status.isAbsent && home !== undefined) await this.absent.note(store, backend, pool, bounded());
      if (known !== undefined && status.uuid !== undefined && status.uuid !== known)
        status = {
          ...status,
          state: 'down',
          reason: `another pool of ours (${status.uuid}) is there instead of ${known}`,
        };
      if (status.state === 'down' && status.uuid === undefined && known === undefined) {
        if (this.mayPrepare(pool, home))
          status = await volumes.preparePool(pool.name, unleased(bounded(), INSPECT_MS)).catch(() => status!);
        else if (home === undefined) status = { ...status, reason: this.isDraining ? DRAINING : NOBODY };
      }
      if (status.state === 'up' && home === undefined && !(await this.takeOver(backend, pool))) {
        if (!this.isDraining) continue;
        status = { ...status, state: 'down', reason: DRAINING };
      }
      if (status.state === 'up') this.note(backendId, pool, exporter?.kind, store.cluster?.portalsHere(pool.name));
      await this.write(tenantId, backendId, pool, position, status);
    }
  }

  private isElsewhere(pool: PoolConfig, home: string | undefined): boolean {
    const owner = home ?? pool.host;
    return this.host !== undefined && owner !== undefined && owner !== this.host.name;
  }

  /** An empty folder may be there on each of several hosts: whose disk it is one of them is told, by its name. */
  private mayPrepare(pool: PoolConfig, home: string | undefined): boolean {
    if (home === undefined && this.isDraining) return false;
    return !this.host?.isOneOfSeveral || (home ?? pool.host) === this.host.name;
  }

  /** Its file system is here. False: another host has it, and keeps it until a person says otherwise. */
  private async takeOver(place: RegisteredBlockBackend, pool: PoolConfig): Promise<boolean> {
    if (!this.host) return true;
    const { name } = this.host;
    const { home, isShared } = await claimPool(this.database, name, place, pool.name);
    if (home === name) return true;
    if (home === undefined) return false;
    if (!pool.within) this.reach.foreign.push({ backend: place.backendId, name: pool.name, path: pool.path, home });
    const why = `pool ${pool.name} at ${pool.path} is on storage host ${home}, and this one, ${name}, has its file system, too`;
    const help = `unmount it on one of them; if its disk stays here: trivet pool move ${pool.name} --to ${name}, or TRIVET_HOST=${home} if this machine takes the place of that host`;
    if (isShared && this.isFirst) this.refuse(`${why}; ${help}`);
    else if (!this.contested.has(pool.path))
      log.error({ pool: pool.name, home, host: name }, `${why}: it is left alone; ${help}`);
    this.contested.add(pool.path);
    return false;
  }

  private note(backendId: string, pool: PoolConfig, exporter: string | undefined, portals = pool.portals): void {
    // Shares lie in a pool that is here, too, and may be thousands.
    if (pool.within) return;
    this.reach.pools.push({ backend: backendId, name: pool.name, path: pool.path });
    if (exporter !== undefined && exporter !== 'none') addTo(this.reach.exporters, exporter);
    for (const portal of portals) addTo(this.reach.portals, portal);
  }

  /** The marker that it had before, and whose it is. */
  private async known(tenantId: string, backendId: string, name: string) {
    const [row] = await this.database.withTenant(tenantId, tx =>
      tx.query<{ uuid: string | null; home: string | null }>(KNOWN, [tenantId, backendId, name]),
    );
    return { uuid: row?.uuid ?? undefined, home: row?.home ?? undefined };
  }

  private async write(
    tenantId: string,
    backendId: string,
    pool: PoolConfig,
    position: number,
    status: PoolStatus,
  ): Promise<void> {
    const row = [
      tenantId,
      backendId,
      pool.name,
      position,
      status.uuid ?? null,
      pool.portals,
      pool.withoutChap,
      status.state,
      bareReason(pool.name, status.reason) ?? null,
      status.clone,
      status.totalBytes,
      status.usedBytes,
      JSON.stringify(pool.portalSets ?? []),
    ];
    const [before] = await this.database.withTenant(tenantId, tx => tx.query<{ before: string | null }>(PUT, row));
    if (before?.before === status.state) return;
    if (status.state === 'up') {
      log.info({ pool: pool.name, path: pool.path }, 'pool is up');
      await this.database.engine(RELEASE, [tenantId, backendId, aboutPool(pool.name).resource]);
    } else log.error({ pool: pool.name, path: pool.path, reason: status.reason }, 'pool is down');
  }
}

/** Backends give an error's text, which says which pool it is and that it is down; so does everyone who shows a reason. */
const bareReason = (pool: string, reason: string | undefined): string | undefined => {
  const said = `pool ${pool} is down: `;
  return reason?.startsWith(said) ? reason.slice(said.length) : reason;
};

const KNOWN = sql(
  'pool_known',
  `SELECT (SELECT uuid FROM trivet.pool WHERE tenant_id = $1 AND backend_id = $2 AND name = $3) AS uuid,
          (SELECT host FROM trivet.pool_home WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3) AS home`,
);

const NOBODY = 'no storage host has taken it into use: name one in the registration of its backend';

const DRAINING =
  'the storage host that has its folder is being drained, and takes no further pool (trivet storage-host undrain)';

const noReach = (): Reach => ({
  pools: [],
  foreign: [],
  standby: [],
  absent: [],
  exporters: [],
  clusters: [],
  portals: [],
});

const addTo = (known: string[], one: string): void => {
  if (!known.includes(one)) known.push(one);
};
