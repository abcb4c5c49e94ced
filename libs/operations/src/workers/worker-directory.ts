import type { QueueClass } from '#operations/operation';
import type { TaskScope, TaskState } from '#operations/periodic/periodic-task';
import type { Database, Write } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { StorageError } from '#platform/errors';

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

/** What a host can work on, as its workers see it. */
export interface Reach {
  /** Whose file systems it has. */
  pools: { backend: string; name: string; path: string }[];
  /** Whose file systems it has, too, although another host is their home. */
  foreign: { backend: string; name: string; path: string; home: string }[];
  /** Of clusters, which another host serves, and this one could. */
  standby: { backend: string; name: string }[];
  /** Whose home it is, and whose file systems it looked for and is without: nobody has them open any more. */
  absent: { backend: string; name: string; path: string }[];
  /** Programs that export volumes of those. */
  exporters: string[];
  /** Monitors of those that its pools could lie in. */
  clusters: string[];
  /** Where those are reached. */
  portals: string[];
}

/** A machine that workers run on. */
export interface StorageHostView extends Reach {
  name: string;
  state: 'up' | 'down';
  release: string;
  workers: number;
  /** Pools of all tenants, shares included. */
  homeOf: number;
  /** Decimal. */
  memoryFree: string;
  /** Operations that are held until it is back. */
  waiting: number;
  seenAt: Date;
  /** A person takes it out of use: it takes no further pool. */
  draining: { since: Date; by: string; reason: string | null } | null;
}

export interface TaskView {
  name: string;
  scope: TaskScope;
  /** The worker that does it by itself; of the appliance's, that does it now; null of a gateway's. */
  workerId: string | null;
  state: 'ok' | 'late';
  lastSuccessAt: Date | null;
  /** Of the last success. */
  durationMs: number | null;
  /** Of the last run, unless that succeeded. */
  error: string | null;
  lateAfterMs: number;
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
const STORAGE_HOSTS = sql(
  'storage_hosts_list',
  `SELECT name, release, reach, memory_free_bytes::text AS "memoryFree", workers, home_of AS "homeOf", waiting,
          seen_at AS "seenAt", silent_ms AS "silentMs",
          draining, draining_reason AS "reason", draining_by AS "by", draining_since AS "since"
     FROM trivet.list_storage_hosts()`,
);
const TASKS = sql(
  'tasks_list',
  `SELECT name, scope, worker_id AS "workerId", succeeded_at AS "lastSuccessAt", duration_ms AS "durationMs", error,
          late_after_ms::float8 AS "lateAfterMs", silent_ms AS "silentMs"
     FROM trivet.list_tasks($1) ORDER BY name, worker_id`,
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
const DRAIN = sql('storage_host_drain', 'SELECT trivet.drain_storage_host($1, $2, $3, $4) AS known');
const CHANGE = sql('queue_change', 'SELECT version FROM trivet.change_queue($1, $2, $3, $4, $5)');

/** Workers by their heartbeats with their periodic tasks, and the classes of operations with what waits in them. */
export class WorkerDirectory {
  /** @param own of the gateway that answers, whose tasks no other one knows */
  constructor(
    private readonly database: Database,
    private readonly own: () => readonly TaskState[] = () => [],
  ) {}

  async list(): Promise<WorkerView[]> {
    const rows = await this.database.call<Omit<WorkerView, 'state'> & { seenMs: number }>(WORKERS, []);
    return rows.map(({ seenMs, ...row }) => ({ ...row, state: seenMs > LOST_AFTER_MS ? 'lost' : 'up' }));
  }

  async storageHosts(): Promise<StorageHostView[]> {
    return (await this.database.call<StorageHostRow>(STORAGE_HOSTS, [])).map(ofStorageHost);
  }

  /**
   * Takes a machine out of use, or back into use.
   * @param note of the audit log, in the same transaction, which is one of the appliance's own tenant
   * @returns undefined: nobody knows it
   */
  drainStorageHost(
    name: string,
    { draining, reason, by, tenantId }: { draining: boolean; reason: string | null; by: string; tenantId: string },
    note: (before: StorageHostView) => Write,
  ): Promise<StorageHostView | undefined> {
    return this.database.withTenant(tenantId, async tx => {
      const find = async () => (await tx.query<StorageHostRow>(STORAGE_HOSTS)).find(row => row.name === name);
      const before = await find();
      if (!before) return undefined;
      await tx.query(DRAIN, [name, draining, draining ? reason : null, by]);
      const after = await find();
      await tx.commit(note(ofStorageHost(before)));
      return after && ofStorageHost(after);
    });
  }

  /** What workers that are up do by themselves, and this gateway. */
  async tasks(): Promise<TaskView[]> {
    const rows = await this.database.call<Omit<TaskView, 'state'> & { silentMs: number }>(TASKS, [LOST_AFTER_MS]);
    return [...rows, ...this.own().map(ofGateway)].map(({ silentMs, ...row }) => ({
      ...row,
      state: silentMs > row.lateAfterMs ? 'late' : 'ok',
    }));
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

type StorageHostRow = Omit<StorageHostView, 'state' | 'draining' | keyof Reach> & {
  reach: Partial<Reach>;
  silentMs: number;
  draining: boolean;
  reason: string | null;
  by: string;
  since: Date;
};

const ofStorageHost = (row: StorageHostRow): StorageHostView => {
  const { reach, silentMs, draining, reason, by, since, ...rest } = row;
  return {
    ...rest,
    state: silentMs > LOST_AFTER_MS ? 'down' : 'up',
    pools: reach.pools ?? [],
    foreign: reach.foreign ?? [],
    standby: reach.standby ?? [],
    absent: reach.absent ?? [],
    portals: reach.portals ?? [],
    exporters: reach.exporters ?? [],
    clusters: reach.clusters ?? [],
    draining: draining ? { since, by, reason } : null,
  };
};

const ofGateway = ({ hasSucceeded, ...state }: TaskState) => ({
  ...state,
  scope: 'gateway' as const,
  workerId: null,
  lastSuccessAt: hasSucceeded ? new Date(Date.now() - state.silentMs) : null,
});
