import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import { type PeriodicTask, WOKEN_SELDOM } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { beginDeletion, requireDeletable } from '#storage/block/snapshots/delete-snapshot';
import { lockSnapshot } from '#storage/block/snapshots/snapshot-store';
import { Sweep } from '#storage/shared/sweep';

const log = createLogger('snapshots');

/** Looked at of a tenant in a round, and of all: then the next round goes on with the other tenants. */
const PORTION = 100;
const ROWS = 1_000;
/** Before every other. */
const START = { updatedAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };
/** So long it waits for its first clone: who takes longer has given up. */
export const UNUSED_MS = 3_600_000;
/** So long it stays in any case: clones of one second share it, and the second may come when the first has failed. */
export const SETTLED_MS = 60_000;

const TENANTS = sql('hidden_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.list_tenants() ORDER BY tenant_id');
const HIDDEN = "s.tenant_id = $1 AND s.hidden AND s.state = 'ready'";
/**
 * Nobody can want it any more. $2 and $3: ms since it was made, with and without a clone that came and went. A clone in
 * the recycle bin has come and gone: it can be restored without the snapshot.
 */
const USELESS = `v.tenant_id = $1 AND v.id = s.volume_id
  AND (v.state IN ('binned', 'gone')
    OR NOT EXISTS (SELECT FROM trivet.volume c
                    WHERE c.tenant_id = $1 AND c.base_snapshot_id = s.id AND c.state IN ('creating', 'ready', 'deleting'))
   AND s.updated_at <= now() - $2 * interval '1 ms'
   AND (s.updated_at <= now() - $3 * interval '1 ms'
     OR EXISTS (SELECT FROM trivet.volume c WHERE c.tenant_id = $1 AND c.base_snapshot_id = s.id)))`;
/** Some of them at a time: most are there for as long as their clones. */
const FIND = sql(
  'hidden_find',
  `SELECT s.id, s.backend_id AS "backendId", s.updated_at::text AS "updatedAt",
          EXISTS (SELECT FROM trivet.volume v WHERE ${USELESS}) AS useless
     FROM trivet.snapshot s
    WHERE ${HIDDEN} AND (s.updated_at, s.id) > ($4::timestamptz, $5::uuid)
    ORDER BY s.updated_at, s.id LIMIT $6`,
);
const STILL = sql(
  'hidden_still',
  `SELECT FROM trivet.snapshot s, trivet.volume v WHERE ${HIDDEN} AND s.id = $4 AND ${USELESS}`,
);

interface Hidden {
  id: string;
  backendId: string;
  updatedAt: string;
  useless: boolean;
}

/**
 * A snapshot that is made only to clone from is deleted by nobody (docs/callers.md#snapshots-for-clones). Callers do not see it;
 * it goes when its last clone is gone, when no clone came, or with its volume, by the same operation that a caller's
 * deletion is. Any number of workers may do this at once.
 */
export class HiddenSnapshotReaper implements PeriodicTask {
  readonly name = 'hidden-snapshots';
  readonly everyMs = 10_000;
  readonly scope = 'appliance';
  readonly calm = WOKEN_SELDOM;

  private readonly sweep = new Sweep<Pick<Hidden, 'updatedAt' | 'id'>>(PORTION);

  /** Whose turn is next, when a round had looked at enough; undefined: everybody had a turn. */
  private next: string | undefined;

  constructor(
    private readonly database: Database,
    private readonly rows = ROWS,
  ) {}

  /** `signal` ends it between two of them. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    let isCalm = this.next === undefined;
    let left = this.rows;
    const from = this.next ?? '';
    this.next = undefined;
    for (const { tenantId } of await this.database.engine<{ tenantId: string }>(TENANTS)) {
      if (tenantId < from) continue;
      if (left <= 0) {
        this.next = tenantId;
        return undefined;
      }
      const { updatedAt, id: after } = this.sweep.placeOf(tenantId, START);
      const found = await this.database.withTenant(tenantId, tx =>
        tx.query<Hidden>(FIND, [tenantId, SETTLED_MS, UNUSED_MS, updatedAt, after, PORTION]),
      );
      this.sweep.wentOn(tenantId, found.length, found.at(-1));
      left -= found.length;
      if (found.length === PORTION) isCalm = false;
      const useless = found.filter(row => row.useless);
      for (const { id, backendId } of useless) {
        if (signal.aborted) return undefined;
        isCalm = false;
        await acceptInBackground(this.database, { tenantId, backendId }, (tx, begin, operationId) =>
          reapHidden(tx, begin, { tenantId, backendId, operationId }, id),
        ).catch(error => {
          // It is being cloned after all, or somebody else was faster.
          if (!isStorageError(error)) log.error({ snapshotId: id, err: error }, 'defect in reaping a hidden snapshot');
        });
      }
    }
    return isCalm ? 'calm' : undefined;
  }
}

/** Looks again under the lock, without which a clone could still begin, and begins the deletion. */
async function reapHidden(
  tx: Tx,
  begin: Begin,
  place: { tenantId: string; backendId: string; operationId: string },
  id: string,
): Promise<void> {
  const row = await lockSnapshot(tx, place, { id });
  if (!row) return;
  const [still] = await tx.query(STILL, [place.tenantId, SETTLED_MS, UNUSED_MS, id]);
  if (!still) return;
  await requireDeletable(tx, place.tenantId, [row]);
  await beginDeletion(tx, begin, place, row);
}
