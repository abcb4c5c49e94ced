import type { BlockBackendKind, PoolConfig, PoolStatus } from '#backends/block-backend';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { aboutPool, StorageError } from '#platform/errors';
import { unleased } from '#platform/lease-signal';
import { createLogger } from '#platform/logging/log';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('pools');

const INSPECT_MS = 5_000;

const PUT = sql(
  'pool_put',
  `INSERT INTO trivet.pool (tenant_id, backend_id, name, position, uuid, portals, without_chap, state, reason, clone,
                            total_bytes, used_bytes, checked_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now())
   ON CONFLICT (tenant_id, backend_id, name) DO UPDATE
      SET position = excluded.position, uuid = coalesce(pool.uuid, excluded.uuid), portals = excluded.portals,
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
 */
export class PoolMonitor implements PeriodicTask {
  readonly name = 'pools';
  readonly everyMs = 5_000;
  readonly scope = 'worker';
  readonly boundMs = 900_000;

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    private readonly kindOf: (kind: string) => BlockBackendKind,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
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
  }

  private async look(
    { tenantId, backendId, kind, config }: RegisteredBlockBackend,
    signal: AbortSignal,
  ): Promise<void> {
    const { volumes } = await this.blocks.open(tenantId, backendId);
    const blockKind = this.kindOf(kind);
    const configured = blockKind.pools(blockKind.parseConfig(config));
    const bounded = () => AbortSignal.any([signal, AbortSignal.timeout(INSPECT_MS)]);
    const seen = await volumes.inspectPools(bounded());
    for (const [position, pool] of configured.entries()) {
      let status = seen.find(({ name }) => name === pool.name);
      if (!status) continue;
      const known = await this.known(tenantId, backendId, pool.name);
      if (known !== undefined && status.uuid !== undefined && status.uuid !== known)
        status = {
          ...status,
          state: 'down',
          reason: `another pool of ours (${status.uuid}) is there instead of ${known}`,
        };
      if (status.state === 'down' && status.uuid === undefined && known === undefined)
        status = await volumes.preparePool(pool.name, unleased(bounded(), INSPECT_MS)).catch(() => status!);
      await this.write(tenantId, backendId, pool, position, status);
    }
  }

  /** The marker that it had before. */
  private async known(tenantId: string, backendId: string, name: string): Promise<string | undefined> {
    const [row] = await this.database.withTenant(tenantId, tx =>
      tx.query<{ uuid: string | null }>(KNOWN, [tenantId, backendId, name]),
    );
    return row?.uuid ?? undefined;
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

const KNOWN = sql('pool_known', 'SELECT uuid FROM trivet.pool WHERE tenant_id = $1 AND backend_id = $2 AND name = $3');
