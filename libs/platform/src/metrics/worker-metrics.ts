import { Counter, Gauge, Histogram } from 'prom-client';
import { FigureSource } from '#platform/metrics/figure-source';
import { registry } from '#platform/metrics/metrics';

/** Of all workers and queues, as any worker reads them in the database. */
export interface WorkerFigures {
  up: number;
  /** Silent, and not ended in order. */
  lost: number;
  pausedQueues: number;
  /** Operations of kinds that no worker that is up knows. */
  unknownKinds: number;
  /** Machines that workers run on. A label holds no name: `trivet storage-host list` says which they are. */
  storageHosts: {
    up: number;
    /** Silent, and the home of pools. */
    down: number;
    /** Silent without a pool: forgotten after a day. */
    gone: number;
  };
  /** That a person has taken out of use. */
  drainingHosts: number;
  /** Of those that are up: more than one while they are upgraded. */
  hostReleases: number;
  /** Of the one that is up and has the least. */
  leastMemoryFree: number;
  /** File systems of pools that are at another host than their home. */
  poolsElsewhere: number;
  /** Pools whose home is up and without their file system. */
  poolsAbsent: number;
  /** Operations that are held until a storage host is back. */
  waitingForHost: number;
  /** Of clusters, that no storage host serves: its home lost the lease, or must still shut the one before out. */
  poolsUnserved: number;
  /** For how long the first of them; 0 when there is none. */
  oldestUnservedSeconds: number;
}

const figures = new FigureSource<WorkerFigures>(registry);

figures.gauges('trivet_workers', 'Workers that said something within the last day, by state.', 'state', f => ({
  up: f.up,
  lost: f.lost,
}));
figures.gauge(
  'trivet_operations_unknown',
  'Operations that have waited for a minute, of kinds that no worker that is up knows.',
  f => f.unknownKinds,
);
figures.gauges(
  'trivet_storage_hosts',
  'Storage hosts, by state: up; down, silent with pools; gone, silent without.',
  'state',
  f => f.storageHosts,
);
figures.gauge(
  'trivet_storage_hosts_draining',
  'Storage hosts that a person has taken out of use.',
  f => f.drainingHosts,
);
figures.gauge(
  'trivet_storage_host_releases',
  'Different releases of the storage hosts that are up.',
  f => f.hostReleases,
);
figures.gauge(
  'trivet_storage_host_memory_free_bytes',
  'Free memory of the storage host that is up and has the least.',
  f => f.leastMemoryFree,
);
figures.gauge(
  'trivet_pools_at_another_host',
  'Pools whose file system is at a storage host that is not their home.',
  f => f.poolsElsewhere,
);
figures.gauge(
  'trivet_pools_absent',
  'Pools whose home is up, and has looked for their file system and is without it.',
  f => f.poolsAbsent,
);
figures.gauge(
  'trivet_operations_waiting_for_storage_host',
  'Operations that are held until a silent storage host is back.',
  f => f.waitingForHost,
);
figures.gauge(
  'trivet_pools_unserved',
  'Pools of clusters that no storage host serves at the moment.',
  f => f.poolsUnserved,
);
figures.gauge(
  'trivet_pool_unserved_oldest_seconds',
  'For how long no storage host serves the first of them; 0 when there is none.',
  f => f.oldestUnservedSeconds,
);
figures.gauge('trivet_queues_paused', 'Classes of operations that somebody paused.', f => f.pausedQueues);

const tasks = new FigureSource<{ late: number }>(registry);

tasks.gauge('trivet_tasks_late', 'Periodic tasks that have not succeeded for too long.', ({ late }) => late);

/** Of all workers, as any of them reads them in the database. A label holds no name: `doctor` says whose they are. */
export interface SlowCallFigures {
  /** Method to how many of its calls have not returned for a minute. */
  calls: Readonly<Record<string, number>>;
  oldestSeconds: number;
}

const slow = new FigureSource<SlowCallFigures>(registry);

slow.gauges(
  'trivet_slow_calls',
  'Calls of operations to backends that have not returned for a minute, by method.',
  'method',
  f => f.calls,
);
slow.gauge(
  'trivet_slow_call_oldest_seconds',
  'How long the oldest of them is under way; 0 when there is none.',
  f => f.oldestSeconds,
);

const labelNames = ['task'] as const;
const registers = [registry];

/** Of tasks that one worker does for all, in the worker that did it: the newest of all workers is the answer. */
export const taskLastSuccess = new Gauge({
  name: 'trivet_task_last_success_timestamp_seconds',
  help: 'When a periodic task last succeeded in this process.',
  labelNames,
  registers,
});

export const taskDuration = new Histogram({
  name: 'trivet_task_duration_seconds',
  help: 'Duration of the runs of periodic tasks.',
  labelNames,
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600],
  registers,
});

export const talliesMendedTotal = new Counter({
  name: 'trivet_tallies_mended_total',
  help: 'Tallies that differed from what is there and were set right: each is a defect.',
  labelNames: ['kind'] as const,
  registers,
});

export const bindWorkerFigures = (read: () => Promise<WorkerFigures>): void => figures.bind(read);
export const bindSlowCalls = (read: () => Promise<SlowCallFigures>): void => slow.bind(read);
/** Of all workers, as any of them reads them in the database, or of this gateway. */
export const bindLateTasks = (read: () => Promise<{ late: number }>): void => tasks.bind(read);
