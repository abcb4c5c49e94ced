import type { BlockBackendKind } from '#backends/block-backend';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import { type ChangeObserver, noting } from '#operations/accepting/change-observer';
import type { Begin } from '#operations/accepting/operations';
import { type PeriodicTask, WOKEN_SELDOM } from '#operations/periodic/periodic-task';
import { type Database, isUniqueViolation, type Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { isUuid } from '#platform/uuid';
import { eachBlockBackend, type RegisteredBlockBackend } from '#storage/block/pools/block-backends';
import { reserve } from '#storage/block/pools/pool-capacity';
import { poolsElsewhere } from '#storage/block/pools/pool-homes';
import { POOL_MARKS } from '#storage/block/pools/pool-marks';
import { protectByGroup } from '#storage/block/protection/protect';
import { deleteVolume } from '#storage/block/volumes/delete-volume';
import { deletionOf } from '#storage/block/volumes/volume-deletion';
import { setVolumeState } from '#storage/block/volumes/volume-store';
import type { BlockDirectory } from '#storage/shared/backend-directory';

const log = createLogger('recycle-bin');

const PORTION = 50;
/** Until a removal is in the pool's figures: btrfs gives blocks back at its next commit, and those are 30 s apart. */
const SETTLE_MS = 40_000;
const INSPECT_MS = 5_000;

const DUE = sql(
  'bin_due',
  `SELECT id, name FROM trivet.volume
    WHERE tenant_id = $1 AND backend_id = $2 AND state = 'binned' AND binned_until <= now()
    ORDER BY binned_until LIMIT $3`,
);
const CROWDED = sql(
  'bin_crowded',
  `SELECT p.name, ceil(p.used_bytes - p.total_bytes * $3::float8)::bigint::text AS "tooMuch",
          EXISTS (SELECT FROM trivet.volume v
                   WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.pool = p.name AND v.state = 'deleting'
                     AND v.binned_until IS NOT NULL AND v.updated_at > now() - interval '10 minutes') AS leaving
     FROM trivet.pool p
    WHERE p.tenant_id = $1 AND p.backend_id = $2 AND p.state = 'up' AND p.total_bytes > 0
      AND p.used_bytes > p.total_bytes * $3::float8`,
);
const OLDEST = sql(
  'bin_oldest',
  `SELECT id, name, folder, binned_until::text AS "binnedUntil" FROM trivet.volume
    WHERE tenant_id = $1 AND backend_id = $2 AND pool = $3 AND state = 'binned'
      AND (binned_until, id) > ($5::timestamptz, $6::uuid)
    ORDER BY binned_until, id LIMIT $4`,
);
/** By the clock: whoever gave it way may have begun, and committed, after this transaction began. */
const LOCK = sql(
  'bin_lock',
  `SELECT id, name, state, backend_id AS "backendId", pool, size_bytes::text AS "sizeBytes",
          binned_until <= clock_timestamp() AS leaves
     FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'binned' FOR UPDATE`,
);
const RESTORE = sql(
  'bin_restore',
  `UPDATE trivet.volume v SET name = $3, state = 'ready', binned_until = NULL, updated_at = now(), audited_at = '-infinity'
    WHERE tenant_id = $1 AND id = $2
      AND NOT EXISTS (SELECT FROM trivet.volume o
                       WHERE o.tenant_id = v.tenant_id AND o.backend_id = v.backend_id AND o.name = $3
                         AND o.state NOT IN ('binned', 'gone'))
   RETURNING id`,
);
/** Of one that had left the bin: it counts again. */
const KEEP_QUOTAS = sql('bin_keep_quotas', 'SELECT trivet.keep_quotas_of($1, $2)');
const LIST = sql(
  'bin_list',
  `SELECT id, name, size_bytes::text AS "sizeBytes", pool, binned_until AS "binnedUntil"
     FROM trivet.volume WHERE tenant_id = $1 AND state = 'binned' ORDER BY binned_until`,
);

interface Leaving {
  id: string;
  name: string;
}

interface Oldest extends Leaving {
  folder: string;
  /** As Postgres writes it, to the microsecond. */
  binnedUntil: string;
}

/** Before every other. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

interface BinnedRow extends Leaving {
  state: string;
  backendId: string;
  pool: string;
  sizeBytes: string;
  /** Its place may be promised to another volume by now. */
  leaves: boolean;
}

interface CrowdedPool {
  name: string;
  /** Bytes above the mark. */
  tooMuch: string;
  /** Volumes of its bin are being removed. */
  leaving: boolean;
}

export interface BinnedVolume {
  id: string;
  name: string;
  sizeBytes: string;
  pool: string;
  binnedUntil: Date;
}

/**
 * Deleted volumes whose images are still there: their names are free, and their places, in pools (pool-capacity.ts) and quotas
 * (0018-quota-gives-way.ts), are for new volumes that need them.
 */
export class RecycleBin implements PeriodicTask {
  readonly name = 'recycle-bin';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';
  readonly calm = WOKEN_SELDOM;
  readonly after = 'pools';
  readonly ofHost = true;
  /** By where the pool is: when volumes last left its bin before their time. */
  private readonly relievedAt = new Map<string, number>();

  constructor(
    private readonly database: Database,
    private readonly blocks: BlockDirectory,
    private readonly kindOf: (kind: string) => BlockBackendKind,
    private readonly pace = { settleMs: SETTLE_MS, portion: PORTION },
    /** Whose pools alone are relieved; absent: all. */
    private readonly host?: string,
  ) {}

  /** Begins the removal of what is due; the operations do it. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    let isCalm = true;
    await eachBlockBackend(this.database, async backend => {
      const { tenantId, backendId } = backend;
      const due = await this.database.withTenant(tenantId, tx =>
        tx.query<Leaving>(DUE, [tenantId, backendId, this.pace.portion]),
      );
      for (const volume of due) if (!signal.aborted) await this.remove(backend, volume);
      // Only then: what is due may be enough.
      const crowded = await this.database.withTenant(tenantId, tx =>
        tx.query<CrowdedPool>(CROWDED, [tenantId, backendId, POOL_MARKS.full]),
      );
      const elsewhere = await (crowded.length > 0 ? poolsElsewhere(this.database, backend, this.host) : new Set());
      for (const pool of crowded)
        if (!signal.aborted && !elsewhere.has(pool.name)) await this.relieve(backend, pool, signal);
      if (due.length + crowded.length > 0) isCalm = false;
    });
    return isCalm ? 'calm' : undefined;
  }

  /**
   * As many as may bring the pool below the mark, were all their blocks theirs alone; more only when its figures say,
   * with these gone, that it was not enough.
   */
  private async relieve(backend: RegisteredBlockBackend, pool: CrowdedPool, signal: AbortSignal): Promise<void> {
    const { tenantId, backendId, kind, config } = backend;
    try {
      const blockKind = this.kindOf(kind);
      const configured = blockKind.pools(blockKind.parseConfig(config)).find(({ name }) => name === pool.name);
      // Shares lie in one file system: what leaves one of them helps all.
      const place = configured?.within?.path ?? configured?.path;
      if (place === undefined) return;
      if (pool.leaving) this.relievedAt.set(place, performance.now());
      if (performance.now() - (this.relievedAt.get(place) ?? Number.NEGATIVE_INFINITY) < this.pace.settleMs) return;
      const { volumes } = await this.blocks.open(tenantId, backendId);
      let tooMuch = BigInt(pool.tooMuch);
      for await (const { id, name, folder } of this.oldest(backend, pool.name)) {
        if (tooMuch <= 0n || signal.aborted) return;
        const image = { pool: pool.name, kind: 'volume', id, folder } as const;
        const bounded = AbortSignal.any([signal, AbortSignal.timeout(INSPECT_MS)]);
        const found = await volumes.inspectImage(image, bounded);
        if (found.state === 'absent' || found.allocatedBytes === 0n) continue;
        await this.remove(backend, { id, name });
        this.relievedAt.set(place, performance.now());
        tooMuch -= found.allocatedBytes;
      }
    } catch (error) {
      if (!isStorageError(error)) throw error;
      log.warn({ pool: pool.name, err: error.toJSON() }, 'the recycle bin of this pool cannot be looked at now');
    }
  }

  private async *oldest({ tenantId, backendId }: RegisteredBlockBackend, pool: string): AsyncGenerator<Oldest> {
    let last: Pick<Oldest, 'id' | 'binnedUntil'> | undefined = { id: NO_ID, binnedUntil: '-infinity' };
    while (last) {
      const { binnedUntil, id }: Pick<Oldest, 'id' | 'binnedUntil'> = last;
      const rows: Oldest[] = await this.database.withTenant(tenantId, tx =>
        tx.query<Oldest>(OLDEST, [tenantId, backendId, pool, this.pace.portion, binnedUntil, id]),
      );
      yield* rows;
      last = rows.length === this.pace.portion ? rows.at(-1) : undefined;
    }
  }

  private async remove({ tenantId, backendId }: RegisteredBlockBackend, { id, name }: Leaving): Promise<void> {
    await acceptInBackground(this.database, { tenantId, backendId }, async (tx, begin, operationId) => {
      await leaveBin(tx, begin, { tenantId, operationId }, id);
    });
    log.info({ volumeId: id, volume: name }, 'volume leaves the recycle bin');
  }
}

export const listBin = (database: Database, tenantId: string): Promise<BinnedVolume[]> =>
  database.withTenant(tenantId, tx => tx.query<BinnedVolume>(LIST, [tenantId]));

/** Puts a deleted volume back with its id, under its name unless another one is given. */
export async function restoreFromBin(
  database: Database,
  tenantId: string,
  volumeId: string,
  { name: as, observer }: { name?: string; observer?: ChangeObserver } = {},
): Promise<void> {
  await database.withTenant(tenantId, async tx => {
    await observer?.before?.(tx);
    const [row] = isUuid(volumeId) ? await tx.query<BinnedRow>(LOCK, [tenantId, volumeId]) : [];
    if (!row) throw notInBin(volumeId);
    const name = as ?? row.name;
    if (row.leaves) await reserve(tx, { tenantId, backendId: row.backendId }, row.pool, BigInt(row.sizeBytes), 'more');
    const restored = await tx.query(RESTORE, [tenantId, volumeId, name]).catch(error => {
      if (!isUniqueViolation(error)) throw error;
      return [];
    });
    if (restored.length === 0)
      throw new StorageError(
        'already_exists',
        `another volume has the name ${name} now: delete it first, or say another`,
        {
          field: 'name',
        },
      );
    if (row.leaves) await tx.query(KEEP_QUOTAS, [tenantId, row.sizeBytes]);
    // Its group is not its group any more.
    await protectByGroup(tx, tenantId, row.id);
    await tx.commit(...noting(observer, { kind: 'volume.restore', resourceId: row.id, resourceName: name }));
  });
}

/** Begins the removal of what is in the bin; false: it is not there. */
export async function leaveBin(
  tx: Tx,
  begin: Begin,
  { tenantId, operationId }: { tenantId: string; operationId: string },
  volumeId: string,
): Promise<boolean> {
  const [row] = isUuid(volumeId) ? await tx.query<BinnedRow>(LOCK, [tenantId, volumeId]) : [];
  if (!row) return false;
  await setVolumeState(tx, tenantId, volumeId, 'deleting', operationId);
  await begin(deleteVolume, deletionOf(row, false));
  return true;
}

const LEAVES = sql(
  'bin_leaves',
  `SELECT FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'deleting' AND binned_until IS NOT NULL`,
);

/** It was in the bin, and is being removed for good. */
export const leavesBin = async (tx: Tx, tenantId: string, volumeId: string): Promise<boolean> =>
  (await tx.query(LEAVES, [tenantId, volumeId])).length > 0;

const notInBin = (volumeId: string): StorageError =>
  new StorageError('not_found', `no volume ${volumeId} is in the recycle bin`);
