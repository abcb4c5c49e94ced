import { throwUnlessSucceeded } from '#operations/operations';
import { type Database, isUniqueViolation } from '#platform/database';
import { StorageError } from '#platform/errors';
import { createLogger } from '#platform/log';
import { sql } from '#platform/sql';
import { isUuid } from '#platform/uuid';
import { acceptInBackground } from '#storage/background-operation';
import { type BlockParts, submit } from '#storage/block-parts';
import type { BlockCaller } from '#storage/block-storage';
import { eachBlockBackend } from '#storage/pools/block-backends';
import { deletion } from '#storage/volumes/volume-deletion';
import { setVolumeState } from '#storage/volumes/volume-store';
import type { Witness } from '#storage/witness';

const log = createLogger('recycle-bin');

const EVERY_MS = 10_000;
const PORTION = 50;
/** Beyond it the bin is emptied before its time, oldest first (hard-cases F3). */
const FULL_SHARE = 0.95;

const DUE = sql(
  'bin_due',
  `SELECT v.id, v.name, v.state FROM trivet.volume v
    WHERE v.tenant_id = $1 AND v.backend_id = $2 AND v.state = 'binned'
      AND (v.binned_until <= now()
        OR EXISTS (SELECT FROM trivet.pool p
                    WHERE p.tenant_id = $1 AND p.backend_id = $2 AND p.name = v.pool AND p.state = 'up'
                      AND p.total_bytes > 0 AND p.used_bytes > p.total_bytes * $3::float8))
    ORDER BY v.binned_until LIMIT $4`,
);
const LOCK = sql(
  'bin_lock',
  `SELECT id, name, state FROM trivet.volume WHERE tenant_id = $1 AND id = $2 AND state = 'binned' FOR UPDATE`,
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
const LIST = sql(
  'bin_list',
  `SELECT id, name, size_bytes::text AS "sizeBytes", pool, binned_until AS "binnedUntil"
     FROM trivet.volume WHERE tenant_id = $1 AND state = 'binned' ORDER BY binned_until`,
);

interface BinnedRow {
  id: string;
  name: string;
  state: string;
}

export interface BinnedVolume {
  id: string;
  name: string;
  sizeBytes: string;
  pool: string;
  binnedUntil: Date;
}

/** Deleted volumes whose images are still there: they count in quotas, their names are free. */
export class RecycleBin {
  private doneAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly database: Database) {}

  /** Begins the removal of what is due; the operations do it. */
  async round(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.doneAt < EVERY_MS) return;
    await eachBlockBackend(this.database, async ({ tenantId, backendId }) => {
      const due = await this.database.withTenant(tenantId, tx =>
        tx.query<BinnedRow>(DUE, [tenantId, backendId, FULL_SHARE, PORTION]),
      );
      for (const { id, name } of due) {
        if (signal.aborted) return;
        await acceptInBackground(this.database, { tenantId, backendId }, async (tx, begin, operationId) => {
          const [row] = await tx.query<BinnedRow>(LOCK, [tenantId, id]);
          if (!row) return;
          await setVolumeState(tx, tenantId, id, 'deleting', operationId);
          await begin(deletion(row, false));
        });
        log.info({ volumeId: id, volume: name }, 'volume leaves the recycle bin');
      }
    });
    this.doneAt = performance.now();
  }
}

export const listBin = (database: Database, tenantId: string): Promise<BinnedVolume[]> =>
  database.withTenant(tenantId, tx => tx.query<BinnedVolume>(LIST, [tenantId]));

/** Puts a deleted volume back with its id, under its name unless another one is given. */
export async function restoreFromBin(
  database: Database,
  tenantId: string,
  volumeId: string,
  { name: as, witness }: { name?: string; witness?: Witness } = {},
): Promise<void> {
  await database.withTenant(tenantId, async tx => {
    await witness?.before?.(tx);
    const [row] = isUuid(volumeId) ? await tx.query<BinnedRow>(LOCK, [tenantId, volumeId]) : [];
    if (!row) throw notInBin(volumeId);
    const name = as ?? row.name;
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
    await witness?.note(tx, { resourceId: row.id, resourceName: name });
  });
}

/** As when its time is up, but now. */
export async function purgeFromBin(parts: BlockParts, caller: BlockCaller, volumeId: string): Promise<void> {
  const { tenantId } = caller;
  const submitted = await submit(parts, caller, async (tx, begin, operationId) => {
    const [row] = isUuid(volumeId) ? await tx.query<BinnedRow>(LOCK, [tenantId, volumeId]) : [];
    if (!row) throw notInBin(volumeId);
    await setVolumeState(tx, tenantId, volumeId, 'deleting', operationId);
    await begin(deletion(row, false));
    return { value: undefined };
  });
  if (submitted.outcome) throwUnlessSucceeded(submitted.outcome, submitted.operationId!, `volume ${volumeId}`);
}

const notInBin = (volumeId: string): StorageError =>
  new StorageError('not_found', `no volume ${volumeId} is in the recycle bin`);
