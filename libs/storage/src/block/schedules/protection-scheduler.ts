import { acceptInBackground } from '#operations/accepting/accept-in-background';
import type { Begin } from '#operations/accepting/operations';
import { type PeriodicTask, WOKEN } from '#operations/periodic/periodic-task';
import type { Database, Tx } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { isStorageError, StorageError } from '#platform/errors';
import { createLogger } from '#platform/logging/log';
import { failpoint } from '#platform/process/failpoint';
import { uuidv7 } from '#platform/uuid';
import { requireRoom } from '#storage/block/pools/pool-capacity';
import { nextPeriod, periodAt, type Schedule } from '#storage/block/protection/periods';
import { ProtectionPruner } from '#storage/block/schedules/protection-pruner';
import { beginSnapshot } from '#storage/block/snapshots/begin-snapshot';
import type { VolumeState } from '#storage/block/volumes/volume-store';

const log = createLogger('protection');

/** Of one tenant in a round: others come in between, and the rest is due in the next one. */
const PORTION = 50;
const AGAIN_MS = 60_000;
/** A full pool is not emptied within a minute. */
const WHEN_FULL_MS = 300_000;

const TENANTS = sql('protection_tenants', 'SELECT tenant_id AS "tenantId" FROM trivet.protection_due()');
/** What was paused may go on, or nothing waits there any more. */
const CLEAR_PAUSES = sql(
  'protection_clear_pauses',
  `DELETE FROM trivet.finding f
    WHERE f.tenant_id = $1 AND f.kind = 'protection_paused'
      AND NOT EXISTS (SELECT FROM trivet.volume_protection p
                        JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id AND v.state = 'ready'
                       WHERE p.tenant_id = $1 AND v.backend_id = f.backend_id AND v.pool = f.pool)`,
);
const DUE = sql(
  'protection_due',
  `SELECT p.volume_id AS "volumeId", p.schedule, v.backend_id AS "backendId", v.pool
     FROM trivet.volume_protection p
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.next_run_at <= now() ORDER BY p.next_run_at LIMIT $2`,
);
/** Both rows, or none for now: callers lock the volume first, and waiting here the other way round would be a deadlock. */
const CLAIM = sql(
  'protection_claim',
  `SELECT p.template_id AS "templateId", t.name AS template, t.schedules, v.name AS volume, v.state, v.pool,
          v.condition IS NOT NULL AS lost, now() AS now,
          EXISTS (SELECT FROM trivet.protection_run r
                    JOIN trivet.snapshot s ON s.tenant_id = r.tenant_id AND s.id = r.snapshot_id AND s.state = 'creating'
                    JOIN trivet.operation o ON o.tenant_id = s.tenant_id AND o.id = s.active_operation
                     AND o.state IN ('pending', 'running')
                   WHERE r.tenant_id = $1 AND r.template_id = p.template_id AND r.volume_id = $2 AND r.schedule = $3)
            AS unfinished
     FROM trivet.volume_protection p
     JOIN trivet.protection_template t ON t.tenant_id = p.tenant_id AND t.id = p.template_id
     JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
    WHERE p.tenant_id = $1 AND p.volume_id = $2 AND p.schedule = $3 AND p.next_run_at <= now()
      FOR UPDATE OF v, p SKIP LOCKED`,
);
const RUN = sql(
  'protection_run',
  `INSERT INTO trivet.protection_run (tenant_id, template_id, volume_id, schedule, period, snapshot_id)
   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING period`,
);
const MOVE = sql(
  'protection_move',
  `UPDATE trivet.volume_protection
      SET next_run_at = $4, prune_at = CASE WHEN $5 THEN coalesce(prune_at, now() + interval '1 minute') ELSE prune_at END
    WHERE tenant_id = $1 AND volume_id = $2 AND schedule = $3`,
);
const POSTPONE = sql(
  'protection_postpone',
  `UPDATE trivet.volume_protection SET next_run_at = now() + $4 * interval '1 ms'
    WHERE tenant_id = $1 AND volume_id = $2 AND schedule = $3 AND next_run_at <= now()`,
);
const LET_GO = sql('protection_gone', 'DELETE FROM trivet.volume_protection WHERE tenant_id = $1 AND volume_id = $2');
const PAUSED = sql(
  'protection_paused',
  `INSERT INTO trivet.finding (tenant_id, backend_id, kind, subject, pool, message)
   VALUES ($1, $2, 'protection_paused', $3, $3, $4)
   ON CONFLICT (tenant_id, backend_id, kind, subject) DO UPDATE SET message = excluded.message, last_seen = now()
   RETURNING first_seen = last_seen AS new`,
);
const RESUMED = sql(
  'protection_resumed',
  `DELETE FROM trivet.finding
    WHERE tenant_id = $1 AND backend_id = $2 AND kind = 'protection_paused' AND subject = $3`,
);

interface Due {
  volumeId: string;
  schedule: string;
  backendId: string;
  pool: string;
}

interface Claimed {
  templateId: string;
  template: string;
  schedules: Schedule[];
  volume: string;
  state: VolumeState;
  pool: string;
  lost: boolean;
  now: Date;
  unfinished: boolean;
}

/**
 * Takes the snapshots that templates ask for. Any number of workers do so at once: what is due stands in Postgres, by the
 * database's clock, and the row (template, volume, schedule, period) is written in the transaction that accepts the
 * snapshot, so that a period has one whatever crashes and whatever is wiped (invariant E10). Of periods that nobody took
 * only the newest is. A volume that cannot be snapshotted now is tried again within its period.
 */
export class ProtectionScheduler implements PeriodicTask {
  readonly name = 'protection';
  readonly everyMs = 0;
  readonly scope = 'worker';
  readonly calm = WOKEN;
  private readonly pruner: ProtectionPruner;

  constructor(private readonly database: Database) {
    this.pruner = new ProtectionPruner(database);
  }

  /** `signal`: this worker stops. */
  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const tenants = await this.database.engine<{ tenantId: string }>(TENANTS);
    for (const { tenantId } of tenants) {
      const due = await this.database.withTenant(tenantId, async tx => {
        await tx.query(CLEAR_PAUSES, [tenantId]);
        return tx.query<Due>(DUE, [tenantId, PORTION]);
      });
      for (const one of due) {
        if (signal.aborted) return undefined;
        await this.take(tenantId, one);
      }
      await this.pruner.round(tenantId, signal);
    }
    return tenants.length === 0 ? 'calm' : undefined;
  }

  private async take(tenantId: string, due: Due): Promise<void> {
    const { backendId, volumeId, schedule, pool } = due;
    try {
      await acceptInBackground(this.database, { tenantId, backendId }, (tx, begin, operationId) =>
        this.claim(tx, begin, { tenantId, operationId, ...due }),
      );
    } catch (error) {
      if (isStorageError(error))
        log.warn({ volumeId, schedule, err: error.toJSON() }, 'a scheduled snapshot must wait');
      else log.error({ volumeId, schedule, err: error }, 'defect in a scheduled snapshot');
      const full = isStorageError(error) && error.field === 'quota';
      await this.database.withTenant(tenantId, async tx => {
        if (full) await tx.query(PAUSED, [tenantId, backendId, pool, pauseMessage(error)]);
        await tx.query(POSTPONE, [tenantId, volumeId, schedule, full ? WHEN_FULL_MS : AGAIN_MS]);
      });
    }
  }

  private async claim(tx: Tx, begin: Begin, at: Due & { tenantId: string; operationId: string }): Promise<void> {
    const { tenantId, backendId, operationId, volumeId } = at;
    const key = [tenantId, volumeId, at.schedule];
    const [row] = await tx.query<Claimed>(CLAIM, key);
    if (!row) return;
    const { templateId, now, pool } = row;
    const schedule = row.schedules.find(({ name }) => name === at.schedule);
    if (!schedule || row.state === 'gone') {
      await tx.query(LET_GO, [tenantId, volumeId]);
      return;
    }
    const next = nextPeriod(schedule, now);
    const move = async (to: Date, made = false) => void (await tx.query(MOVE, [...key, to, made]));
    const soon = (ms: number) => new Date(Math.min(next.getTime(), now.getTime() + ms));
    if (row.state !== 'ready' || row.lost) return move(next);
    if (row.unfinished) return move(soon(AGAIN_MS));

    const full = await fullness(tx, { tenantId, backendId }, pool);
    if (full) {
      const [finding] = await tx.query<{ new: boolean }>(PAUSED, [tenantId, backendId, pool, pauseMessage(full)]);
      if (finding!.new) log.error({ pool, err: full.toJSON() }, 'protection templates are paused in a pool');
      return move(soon(WHEN_FULL_MS));
    }
    await tx.query(RESUMED, [tenantId, backendId, pool]);

    const period = periodAt(schedule, now);
    const id = uuidv7();
    const [run] = await tx.query(RUN, [tenantId, templateId, volumeId, schedule.name, period, id]);
    await move(next, true);
    if (!run) return;
    await failpoint('protection:before-accept');
    const owner = { tenantId, backendId, operationId };
    const snapshot = { id, volumeId, description: `made by ${row.template}`, config: {} };
    const name = `${row.template}-${schedule.name}-${stamp(period)}`;
    const { begun } = await beginSnapshot(tx, begin, owner, { ...snapshot, name });
    // Somebody else's snapshot has the name; it stays, and is none of the template's.
    if (!begun) await beginSnapshot(tx, begin, owner, { ...snapshot, name: `${name}-${id}` });
    await failpoint('protection:accepted');
    log.info({ volumeId, volume: row.volume, snapshotId: id, period, operationId }, 'scheduled snapshot is accepted');
  }
}

/** The error that a full pool gives, or a backend that takes nothing new; undefined when there is room. */
async function fullness(
  tx: Tx,
  owner: { tenantId: string; backendId: string },
  pool: string,
): Promise<StorageError | undefined> {
  try {
    await requireRoom(tx, owner, pool, 'new');
    return undefined;
  } catch (error) {
    if (error instanceof StorageError && (error.kind === 'resource_exhausted' || error.field === 'backend'))
      return error;
    throw error;
  }
}

const pauseMessage = (full: StorageError): string => `protection templates take no snapshots here: ${full.message}`;

/** 2026-11-20T0930Z: without colons, which some tools do not take in a name. */
const stamp = (period: Date): string => `${period.toISOString().slice(0, 16).replace(':', '')}Z`;
