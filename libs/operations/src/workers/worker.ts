import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Worker as BullWorker } from 'bullmq';
import { type Handler, HandlerRegistry } from '#operations/definitions/handler';
import { LeaseManager } from '#operations/leases/lease';
import { type LeasedOperation, QUEUE_CLASSES, type QueueClass } from '#operations/operation';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import { bullmq } from '#operations/queue/bullmq';
import {
  BullDoorbell,
  type Doorbell,
  NotifyDoorbell,
  queueName,
  type RingJob,
  ringChannel,
} from '#operations/queue/doorbell';
import { type Pausable, QueuePauses } from '#operations/queue/queue-pause';
import { Circuits } from '#operations/running/circuit';
import { Runner } from '#operations/running/runner';
import { ConcurrencyLimit } from '#operations/workers/concurrency-limit';
import { Lookout } from '#operations/workers/lookout';
import { operationRetention } from '#operations/workers/operation-retention';
import { PeriodicTasks } from '#operations/workers/periodic-tasks';
import { Reconciler } from '#operations/workers/reconciler';
import type { StorageHost } from '#operations/workers/storage-host';
import { Heartbeat } from '#operations/workers/worker-heartbeat';
import { connectRedis } from '#platform/connections/redis';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { ToldChanges } from '#platform/database/told-changes';
import { createLogger } from '#platform/logging/log';

const log = createLogger('worker');

/** A ring that reached a worker which takes nothing any more: due again at once. */
const NOT_TAKEN = sql('not_taken', `UPDATE trivet.operation SET place = NULL WHERE id = $1 AND state = 'pending'`);

/** BullMQ's own 15 s would leave a class to the reconciler for that long after each connection that Redis closed. */
const CONSUMER_RETRY_MS = 1_000;
const UNHEARD_EVERY_MS = 10_000;
/** A worker that waits is rung for; BullMQ's own 5 s only ask again whether the connection lives, for each class. */
const QUIET_SECONDS = 20;

export interface WorkerOptions {
  database: Database;
  handlers: readonly Handler[];
  /** Rejects while the backend cannot be used; asked only while its circuit is open. */
  probeBackend(tenantId: string, backendId: string): Promise<void>;
  /** A Redis URL, or none. */
  redis: string;
  redisPrefix: string;
  leaseMs: number;
  /** How often it looks for operations that nobody rang for; no periodic task comes more often. */
  reconcileMs: number;
  concurrency: number;
  tenantCap: number;
  /** Whose pools it works on; without one it is on a machine of its name, which has none. */
  host?: StorageHost;
  /** Of the program, for people. */
  version?: string;
  /** Beside those of the engine itself. */
  tasks?: readonly PeriodicTask[];
  /** Those that go on until the last operation has ended, and that no setting makes slower. */
  pulse?: readonly PeriodicTask[];
}

/** Everything that runs operations in one process. Any number of such processes share Postgres and Redis. */
export class OperationWorker {
  /** New with each process: a restarted worker is another one. */
  readonly id = randomUUID();
  readonly handlers: HandlerRegistry;
  private readonly leases: LeaseManager;
  private readonly runner: Runner;
  readonly tasks: PeriodicTasks;
  /** Those that go on until the last operation has ended, and that no setting makes slower. */
  private readonly pulse: PeriodicTasks;
  private readonly doorbell: Doorbell;
  private readonly running = new Set<Promise<void>>();
  private readonly closers: (() => Promise<unknown>)[] = [];
  private readonly consumers = new Map<QueueClass, BullWorker[]>();
  /** Each class has its own: a flood of copies never stands before a bucket's creation. */
  private readonly limits: ReadonlyMap<QueueClass, ConcurrencyLimit>;
  private readonly heartbeat: Heartbeat;
  private accepting = true;
  private hearsOwnQueues = false;
  private unheardAt = 0;

  constructor(private readonly options: WorkerOptions) {
    const { database, redis, redisPrefix } = options;
    const host = options.host?.name ?? hostname();
    this.handlers = new HandlerRegistry(options.handlers);
    this.limits = new Map(QUEUE_CLASSES.map(name => [name, new ConcurrencyLimit(options.concurrency)]));
    this.doorbell = redis === 'none' ? new NotifyDoorbell(database) : new BullDoorbell(redis, redisPrefix);
    const circuits = new Circuits(database, options.probeBackend);
    const kinds = this.handlers.all().map(({ kind }) => kind);
    const late = ({ id: operationId, kind }: LeasedOperation) =>
      log.warn({ operationId, kind }, 'lease not renewed: it ended before');
    this.leases = new LeaseManager(database, this.id, options.leaseMs, kinds, late, host);
    this.runner = new Runner(database, this.handlers, this.leases, circuits, this.doorbell, options.tenantCap);
    const told = new ToldChanges(database);
    this.closers.push(() => told.stop());
    const pauses = new QueuePauses(database, new Map(QUEUE_CLASSES.map(name => [name, this.pausable(name)])), told);
    told.on('queues', () => this.pulse.wake(pauses.name));
    this.heartbeat = new Heartbeat(database, {
      id: this.id,
      version: options.version ?? '',
      host,
      kinds,
      concurrency: options.concurrency,
      running: () => this.leases.size,
      tasks: () => [...this.pulse.states(), ...this.tasks.states()],
      beaten: () => this.beatOfHost(),
    });
    const reconciler = new Reconciler(
      database,
      this.doorbell,
      rings => {
        for (const ring of rings) this.runIfRoom(ring.class, ring.operationId);
      },
      { roundMs: options.reconcileMs, cap: options.tenantCap, kinds, host },
    );
    const periodic = {
      database,
      workerId: this.id,
      host: options.host,
      registered: () => this.pulse.first(this.heartbeat.name),
    };
    this.pulse = new PeriodicTasks([this.heartbeat, pauses, ...(options.pulse ?? [])], { ...periodic, leastMs: 0 });
    const lookout = new Lookout(database, task => this.tasks.wake(task));
    const own = [lookout, reconciler, circuits, operationRetention(database)];
    this.tasks = new PeriodicTasks([...own, ...(options.tasks ?? [])], { ...periodic, leastMs: options.reconcileMs });
  }

  start(): void {
    this.leases.start();
    if (this.options.redis === 'none') this.listenToPostgres();
    else this.listenToRedis(null);
    this.pulse.start();
    this.tasks.start();
  }

  /** What its host has is rung for at queues of its own as soon as there are other hosts. */
  private async beatOfHost(): Promise<void> {
    const { host, redis } = this.options;
    await host?.beat();
    if (!host?.isOneOfSeveral || redis === 'none' || this.hearsOwnQueues || !this.accepting) return;
    this.hearsOwnQueues = true;
    this.listenToRedis(host.name);
  }

  /** Without Redis there is nothing to hold back: a ring that means nothing costs one claim. */
  private pausable(queueClass: QueueClass): Pausable {
    return {
      pause: () => {
        for (const consumer of this.consumers.get(queueClass) ?? []) void consumer.pause(true).catch(() => {});
      },
      resume: () => {
        if (this.accepting) for (const consumer of this.consumers.get(queueClass) ?? []) void consumer.resume();
      },
    };
  }

  private listenToPostgres(): void {
    const classes = new Map(QUEUE_CLASSES.map(name => [ringChannel(name), name]));
    const listener = this.options.database.listen(
      [...classes.keys()],
      (channel, id) => this.runIfRoom(classes.get(channel)!, id),
      () => {},
    );
    this.closers.push(() => listener.stop());
  }

  /**
   * A job is a ring, and is done when it has been heard: what it names begins as soon as there is room, and lives in
   * Postgres from then on. So a worker that is full holds one job back, and leaves the others to whoever has room.
   * @param host whose queues; null: those of all workers
   */
  private listenToRedis(host: string | null): void {
    const { redis, redisPrefix } = this.options;
    const { Worker } = bullmq();
    for (const [queueClass, limit] of this.limits) {
      const connection = connectRedis(redis, 'listen', () => {});
      const hear = async ({ operationIds }: RingJob): Promise<void> => {
        for (const operationId of operationIds) {
          if (limit.full) await limit.free();
          limit.during(this.run(operationId));
        }
      };
      const worker = new Worker(queueName(queueClass, host), async job => hear(job.data as RingJob), {
        connection,
        prefix: redisPrefix,
        concurrency: 1,
        // Crashes are counted in Postgres; BullMQ's own count would end in a job that never runs again.
        maxStalledCount: 1_000_000,
        skipVersionCheck: true,
        runRetryDelay: CONSUMER_RETRY_MS,
        drainDelay: QUIET_SECONDS,
      });
      worker.on('error', error => this.unheard(queueClass, error));
      this.consumers.set(queueClass, [...(this.consumers.get(queueClass) ?? []), worker]);
      this.closers.push(async () => {
        await Promise.race([worker.close(true), new Promise(resolve => setTimeout(resolve, 1_000).unref())]);
        connection.disconnect();
      });
    }
  }

  private unheard(queueClass: QueueClass, error: Error): void {
    if (!this.accepting || Date.now() - this.unheardAt < UNHEARD_EVERY_MS) return;
    this.unheardAt = Date.now();
    log.warn({ class: queueClass, err: error }, 'taking work from Redis failed; operations go on by polling Postgres');
  }

  /** Beyond the limit of its class the ring is dropped: the operation stays due. */
  private runIfRoom(queueClass: QueueClass, operationId: string): void {
    const limit = this.limits.get(queueClass)!;
    if (!limit.full) limit.during(this.run(operationId));
  }

  private run(operationId: string): Promise<void> {
    if (!this.accepting) return this.leave(operationId);
    const run = this.runner.run(operationId).finally(() => this.running.delete(run));
    this.running.add(run);
    return run;
  }

  private async leave(operationId: string): Promise<void> {
    await this.options.database.engine(NOT_TAKEN, [operationId]).catch(() => {});
  }

  /**
   * Takes nothing new, lets what runs end within the deadline, and hands the rest back: its lease ends now, or when a call
   * that is under way can take no effect any more. Its fence stays, so that this one can write nothing from then on.
   */
  async stop(deadlineMs: number): Promise<void> {
    this.accepting = false;
    for (const limit of this.limits.values()) limit.open();
    // What is still in Redis belongs to the other workers.
    for (const consumer of [...this.consumers.values()].flat()) void consumer.pause(true).catch(() => {});
    const stopped = this.tasks.stop();
    const left = new Promise(resolve => setTimeout(resolve, deadlineMs).unref());
    await Promise.race([Promise.allSettled([...this.running, stopped]), left]);
    this.leases.stop();
    await this.leases.tellLeft();
    if (this.running.size > 0) await this.leases.handBack().catch(() => {});
    await this.pulse.stop();
    await this.heartbeat.leave();
    await Promise.all(this.closers.map(close => close().catch(() => {})));
    await this.doorbell.close();
  }
}
