import { indexChanges } from '#changes/index-changes';
import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { TO_BE_READ } from '#storage/block/snapshots/kept-images';

const log = createLogger('changes');

/** Of each tenant and round; the rest comes with the next one. */
const PORTION = 100;

const TENANTS = sql('changes_due', 'SELECT tenant_id AS "tenantId" FROM trivet.changes_due()');
const UNDER_WAY = `EXISTS (SELECT FROM trivet.operation o
                            WHERE o.tenant_id = $1 AND o.resource_id = s.id AND o.kind = 'changes.index'
                              AND o.state IN ('pending', 'running', 'needs_attention'))`;
const FIND = sql(
  'changes_find',
  `SELECT s.id, s.name, s.volume_id AS "volumeId", s.backend_id AS "backendId"
     FROM trivet.snapshot s
    WHERE s.tenant_id = $1 AND s.image_gone_at IS NULL AND ${TO_BE_READ} AND NOT ${UNDER_WAY}
    ORDER BY s.cut, s.volume_id
    LIMIT $2`,
);
const LOCK = sql(
  'changes_lock',
  `SELECT FROM trivet.snapshot
    WHERE tenant_id = $1 AND id = $2 AND cut IS NOT NULL AND index_state = 'pending' FOR UPDATE`,
);
const STILL = sql(
  'changes_still',
  `SELECT FROM trivet.snapshot s WHERE s.tenant_id = $1 AND s.id = $2 AND NOT ${UNDER_WAY}`,
);

interface Due {
  id: string;
  name: string;
  volumeId: string;
  backendId: string;
}

/**
 * Begins `changes.index` for the cuts that are not indexed, in their order: the slot of the volume is a line, so there is
 * one builder a volume (invariant C2), and each step begins when the one before it ends. Any number of workers may do this
 * at once.
 */
export class IndexScheduler implements PeriodicTask {
  readonly name = 'change-index';
  readonly everyMs = 1_000;
  readonly scope = 'worker';
  readonly calm = WOKEN;

  constructor(private readonly database: Database) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const tenants = await this.database.call<{ tenantId: string }>(TENANTS, []);
    for (const { tenantId } of tenants) {
      const found = await this.database.withTenant(tenantId, tx => tx.query<Due>(FIND, [tenantId, PORTION]));
      const held = new Set<string>();
      for (const due of found) {
        if (signal.aborted) return undefined;
        if (held.has(due.volumeId)) continue;
        await acceptInBackground(this.database, { tenantId, backendId: due.backendId }, (tx, begin) =>
          beginIndex(tx, begin, tenantId, due),
        ).catch(error => {
          // None of a later cut may be in line before it.
          held.add(due.volumeId);
          // Somebody else was faster.
          if (!isStorageError(error)) log.error({ snapshotId: due.id, err: error }, 'defect in beginning an index');
        });
      }
    }
    return tenants.length === 0 ? 'calm' : undefined;
  }
}

/** Looks again under the lock of the snapshot, which all who would begin it take. */
async function beginIndex(tx: Tx, begin: Begin, tenantId: string, { id, name, volumeId }: Due): Promise<void> {
  const key = [tenantId, id];
  if ((await tx.query(LOCK, key)).length === 0 || (await tx.query(STILL, key)).length === 0) return;
  const request = { volumeId, resources: [volumeId] as const };
  await begin(indexChanges, { resourceId: id, resourceName: name, request });
}
