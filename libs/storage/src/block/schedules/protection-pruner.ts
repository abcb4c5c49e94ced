import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { periodAt, type Schedule } from '#storage/block/protection/periods';
import { beginDeletion } from '#storage/block/snapshots/delete-snapshot';
import { clonesOf, lockSnapshot, type SnapshotState } from '#storage/block/snapshots/snapshot-store';

const log = createLogger('protection');

const PORTION = 50;
/** A clone hangs on it, or the volume is in the recycle bin. */
const LATER_MS = 3_600_000;
/** One is still being made or deleted. */
const SOON_MS = 60_000;

const DUE = sql(
  'protection_prune_due',
  `SELECT p.volume_id AS "volumeId", p.schedule, v.backend_id AS "backendId"
     FROM trivet.volume_protection p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.prune_at <= now() ORDER BY p.prune_at LIMIT $2`,
);
const CLAIM = sql(
  'protection_prune_claim',
  `SELECT p.template_id AS "templateId", t.schedules, v.state = 'ready' AS ready, now() AS now
     FROM trivet.volume_protection p
     JOIN trivet.protection_template t ON t.tenant_id = p.tenant_id AND t.id = p.template_id
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.schedule = $3 AND p.prune_at <= now()
      FOR UPDATE OF v, p SKIP LOCKED`,
);
const RUNS = sql(
  'protection_runs',
  `SELECT r.period, r.snapshot_id AS "snapshotId", s.state
     FROM trivet.protection_run r
     JOIN trivet.snapshot s ON s.tenant_id = r.tenant_id AND s.id = r.snapshot_id
    WHERE r.tenant_id = $1 AND r.volume_id = $2 AND r.schedule = $3 AND r.template_id = $4 ORDER BY r.period DESC`,
);
/** The row of the period that runs stays whatever became of its snapshot: there is one a period, not more. */
const FORGET = sql(
  'protection_forget',
  `DELETE FROM trivet.protection_run r USING trivet.snapshot s
    WHERE r.tenant_id = $1 AND r.volume_id = $2 AND r.schedule = $3 AND r.template_id = $4 AND r.period < $5
      AND s.tenant_id = r.tenant_id AND s.id = r.snapshot_id AND s.state = 'gone'`,
);
const PRUNE_AT = sql(
  'protection_prune_at',
  `UPDATE trivet.volume_protection SET prune_at = now() + $4::double precision * interval '1 ms'
    WHERE tenant_id = $1 AND volume_id = $2 AND schedule = $3`,
);

interface Due {
  volumeId: string;
  schedule: string;
  backendId: string;
}

interface Run {
  period: Date;
  snapshotId: string;
  state: SnapshotState;
}

/**
 * Deletes what a schedule of a template made beyond the number that it retains, and nothing else: the oldest first, through
 * the same durable operation that a caller's deletion is. A snapshot with a clone that callers see is left until the clone
 * is gone. What is deleted by hand, or could not be made, counts for nothing.
 */
export class ProtectionPruner {
  constructor(private readonly database: Database) {}

  async round(tenantId: string, signal: AbortSignal): Promise<void> {
    const due = await this.database.withTenant(tenantId, tx => tx.query<Due>(DUE, [tenantId, PORTION]));
    for (const one of due) {
      let more = true;
      while (more && !signal.aborted) more = await this.prune(tenantId, one);
    }
  }

  /** At most one snapshot; true: there may be more. */
  private async prune(tenantId: string, due: Due): Promise<boolean> {
    const { backendId, volumeId, schedule } = due;
    try {
      return await acceptInBackground(this.database, { tenantId, backendId }, (tx, begin, operationId) =>
        this.claim(tx, begin, { tenantId, operationId, ...due }),
      );
    } catch (error) {
      if (isStorageError(error)) log.warn({ volumeId, schedule, err: error.toJSON() }, 'pruning must wait');
      else log.error({ volumeId, schedule, err: error }, 'defect in pruning');
      await this.database.withTenant(tenantId, tx => tx.query(PRUNE_AT, [tenantId, volumeId, schedule, SOON_MS]));
      return false;
    }
  }

  private async claim(tx: Tx, begin: Begin, at: Due & { tenantId: string; operationId: string }): Promise<boolean> {
    const { tenantId, backendId, operationId, volumeId } = at;
    const key = [tenantId, volumeId, at.schedule];
    const [row] = await tx.query<{ templateId: string; schedules: Schedule[]; ready: boolean; now: Date }>(CLAIM, key);
    if (!row) return false;
    const schedule = row.schedules.find(({ name }) => name === at.schedule);
    const again = async (ms: number | null) => {
      await tx.query(PRUNE_AT, [...key, ms]);
      return false;
    };
    if (!schedule || !row.ready) return again(LATER_MS);
    const runs = await tx.query<Run>(RUNS, [...key, row.templateId]);
    const beyond = runs.filter(({ state }) => state === 'ready').slice(schedule.retain);
    for (const { snapshotId } of beyond.reverse()) {
      const snapshot = await lockSnapshot(tx, { tenantId, backendId }, { id: snapshotId });
      if (snapshot?.state !== 'ready') continue;
      const clones = await clonesOf(tx, tenantId, [snapshotId]);
      if (clones.size > 0) continue;
      await beginDeletion(tx, begin, { tenantId, operationId }, snapshot);
      log.info({ volumeId, snapshotId, snapshot: snapshot.name, operationId }, 'scheduled snapshot leaves');
      return true;
    }
    await tx.query(FORGET, [...key, row.templateId, periodAt(schedule, row.now)]);
    if (runs.some(({ state }) => state === 'creating' || state === 'deleting')) return again(SOON_MS);
    return again(beyond.length > 0 ? LATER_MS : null);
  }
}
