import type { QueueClass } from '#operations/operation';
import type { Database, Write } from '#platform/database';
import { StorageError } from '#platform/errors';
import { sql } from '#platform/sql';

/** Silent for longer: two beats were missed. */
export const LOST_AFTER_MS = 15_000;

export interface WorkerView {
  id: string;
  host: string;
  pid: number;
  version: string;
  concurrency: number;
  running: number;
  state: 'up' | 'lost';
  startedAt: Date;
  seenAt: Date;
}

export interface QueueView {
  class: QueueClass;
  paused: boolean;
  reason: string | null;
  changedBy: string | null;
  changedAt: Date;
  version: number;
  waiting: number;
  running: number;
  oldestWaitingMs: number | null;
}

const WORKERS = sql(
  'workers_list',
  `SELECT id, host, pid, version, concurrency, running, started_at AS "startedAt", seen_at AS "seenAt", seen_ms AS "seenMs"
     FROM trivet.list_workers()`,
);
const QUEUES = sql(
  'queues_list',
  `SELECT class, paused, reason, changed_by AS "changedBy", changed_at AS "changedAt", version FROM trivet.list_queues()`,
);
const COUNTS = sql(
  'queues_counts',
  `SELECT class, count(*) FILTER (WHERE state = 'pending')::int AS waiting,
          count(*) FILTER (WHERE state = 'running')::int AS running,
          extract(epoch FROM now() - min(created_at) FILTER (WHERE state = 'pending'))::float8 * 1000 AS "oldestWaitingMs"
     FROM trivet.operation WHERE finished_at IS NULL GROUP BY class`,
);
const CHANGE = sql('queue_change', 'SELECT version FROM trivet.change_queue($1, $2, $3, $4, $5)');

/** Workers by their heartbeats, and the classes of operations with what waits in them. */
export class WorkerDirectory {
  constructor(private readonly database: Database) {}

  async list(): Promise<WorkerView[]> {
    const rows = await this.database.call<Omit<WorkerView, 'state'> & { seenMs: number }>(WORKERS, []);
    return rows.map(({ seenMs, ...row }) => ({ ...row, state: seenMs > LOST_AFTER_MS ? 'lost' : 'up' }));
  }

  async queues(): Promise<QueueView[]> {
    const [rows, counts] = await Promise.all([
      this.database.call<QueueView>(QUEUES, []),
      this.database.engine<Pick<QueueView, 'class' | 'waiting' | 'running' | 'oldestWaitingMs'>>(COUNTS),
    ]);
    const none = { waiting: 0, running: 0, oldestWaitingMs: null };
    return rows.map(row => ({ ...row, ...(counts.find(count => count.class === row.class) ?? none) }));
  }

  /**
   * Pauses or resumes it for all workers, from the commit on.
   * @param note of the audit log, in the same transaction, which is one of the appliance's own tenant
   */
  async change(
    queueClass: QueueClass,
    { paused, reason, by, tenantId }: { paused: boolean; reason: string | null; by: string; tenantId: string },
    note: (before: QueueView) => Write,
  ): Promise<QueueView> {
    const changed = await this.database.withTenant(tenantId, async tx => {
      const [before] = (await tx.query<QueueView>(QUEUES)).filter(row => row.class === queueClass);
      if (!before) throw new StorageError('not_found', `there is no class ${queueClass}`);
      const rows = await tx.query(CHANGE, [queueClass, before.version, paused, reason, by]);
      if (rows.length > 0) await tx.commit(note(before));
      return rows.length > 0;
    });
    if (!changed) throw new StorageError('aborted', `the class ${queueClass} was changed meanwhile; try again`);
    return (await this.queues()).find(row => row.class === queueClass)!;
  }
}
