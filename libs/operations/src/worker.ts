import { randomUUID } from 'node:crypto';
import type { Worker as BullWorker } from 'bullmq';
import { bullmq } from '#operations/bullmq';
import { Circuits } from '#operations/circuit';
import {
  BullDoorbell,
  type Doorbell,
  NotifyDoorbell,
  queueName,
  type RingJob,
  ringChannel,
} from '#operations/doorbell';
import { type Handler, HandlerRegistry } from '#operations/handler';
import { LeaseKeeper } from '#operations/lease';
import { QUEUE_CLASSES, type QueueClass } from '#operations/operation';
import { type Pausable, QueuePauses } from '#operations/queue-pause';
import { Reconciler } from '#operations/reconciler';
import { Room } from '#operations/room';
import { Runner } from '#operations/runner';
import { Heartbeat } from '#operations/worker-heartbeat';
import type { Database } from '#platform/database';
import { createLogger } from '#platform/log';
import { connectRedis } from '#platform/redis';
import { sql } from '#platform/sql';

const log = createLogger('worker');

/**
 * $1 worker $2 operations with an unanswered call $3 for how many ms that may still take effect. Until then nobody else
 * touches their resources (invariant E5); all others go on at once.
 */
const HAND_BACK = sql(
  'hand_back',
  `UPDATE trivet.operation o
      SET lease_owner = NULL, dispatched_at = now() - interval '1 hour',
          lease_until = least(lease_until, now() + interval '1 ms' * coalesce(
            (SELECT ms FROM unnest($2::uuid[], $3::float8[]) AS unanswered (id, ms) WHERE unanswered.id = o.id), 0))
    WHERE lease_owner = $1 AND state = 'running' AND lease_until > now()`,
);

/** A ring that reached a worker which takes nothing any more: due again at once. */
const NOT_TAKEN = sql('not_taken', `UPDATE trivet.operation SET place = NULL WHERE id = $1 AND state = 'pending'`);

/** BullMQ's own 15 s would leave a class to the reconciler for that long after each connection that Redis closed. */
const CONSUMER_RETRY_MS = 1_000;
const UNHEARD_EVERY_MS = 10_000;

export interface WorkerOptions {
  database: Database;
  handlers: readonly Handler[];
  /** Rejects while the backend cannot be used; asked only while its circuit is open. */
  probeBackend(tenantId: string, backendId: string): Promise<void>;
  /** A Redis URL, or none. */
  redis: string;
  redisPrefix: string;
  leaseMs: number;
  reconcileMs: number;
  concurrency: number;
  tenantCap: number;
  /** Of the program, for people. */
  version?: string;
  /** Begins after a round of the reconciler, unless it still runs: the audit. The signal: this worker stops. */
  background?: (signal: AbortSignal) => Promise<void>;
}

/** Everything that runs operations in one process. Any number of such processes share Postgres and Redis. */
export class OperationWorker {
  /** New with each process: a restarted worker is another one. */
  readonly id = randomUUID();
  readonly handlers: HandlerRegistry;
  private readonly leases: LeaseKeeper;
  private readonly runner: Runner;
  private readonly reconciler: Reconciler;
  private readonly doorbell: Doorbell;
  private readonly running = new Set<Promise<void>>();
  private readonly closers: (() => Promise<unknown>)[] = [];
  private readonly consumers = new Map<QueueClass, BullWorker>();
  /** Each class has its own: a flood of copies never stands before a bucket's creation. */
  private readonly rooms: ReadonlyMap<QueueClass, Room>;
  private readonly pauses: QueuePauses;
  private readonly heartbeat: Heartbeat;
  private accepting = true;
  private unheardAt = 0;

  constructor(private readonly options: WorkerOptions) {
    const { database, redis, redisPrefix } = options;
    this.handlers = new HandlerRegistry(options.handlers);
    this.rooms = new Map(QUEUE_CLASSES.map(name => [name, new Room(options.concurrency)]));
    this.doorbell = redis === 'none' ? new NotifyDoorbell(database) : new BullDoorbell(redis, redisPrefix);
    const circuits = new Circuits(database, options.probeBackend);
    this.leases = new LeaseKeeper(database, this.id, options.leaseMs, operation => {
      log.warn({ operationId: operation.id, kind: operation.kind }, 'lease not renewed: it ended before');
    });
    this.runner = new Runner(database, this.handlers, this.leases, circuits, this.doorbell, options.tenantCap);
    this.pauses = new QueuePauses(database, new Map(QUEUE_CLASSES.map(name => [name, this.pausable(name)])));
    this.heartbeat = new Heartbeat(database, {
      id: this.id,
      version: options.version ?? '',
      concurrency: options.concurrency,
      running: () => this.leases.size,
    });
    this.reconciler = new Reconciler(
      database,
      this.doorbell,
      circuits,
      rings => {
        for (const ring of rings) this.runIfRoom(ring.class, ring.operationId);
      },
      { everyMs: options.reconcileMs, cap: options.tenantCap, background: options.background },
    );
  }

  start(): void {
    this.leases.start();
    if (this.options.redis === 'none') this.listenToPostgres();
    else this.listenToRedis();
    this.pauses.start();
    this.heartbeat.start();
    this.reconciler.start();
  }

  /** Without Redis there is nothing to hold back: a ring that means nothing costs one claim. */
  private pausable(queueClass: QueueClass): Pausable {
    return {
      pause: () =>
        void this.consumers
          .get(queueClass)
          ?.pause(true)
          .catch(() => {}),
      resume: () => {
        if (this.accepting) void this.consumers.get(queueClass)?.resume();
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
   */
  private listenToRedis(): void {
    const { redis, redisPrefix } = this.options;
    const { Worker } = bullmq();
    for (const [queueClass, room] of this.rooms) {
      const connection = connectRedis(redis, 'listen', () => {});
      const hear = async ({ operationIds }: RingJob): Promise<void> => {
        for (const operationId of operationIds) {
          if (room.full) await room.free();
          room.during(this.run(operationId));
        }
      };
      const worker = new Worker(queueName(queueClass), async job => hear(job.data as RingJob), {
        connection,
        prefix: redisPrefix,
        concurrency: 1,
        // Crashes are counted in Postgres; BullMQ's own count would end in a job that never runs again.
        maxStalledCount: 1_000_000,
        skipVersionCheck: true,
        runRetryDelay: CONSUMER_RETRY_MS,
      });
      worker.on('error', error => this.unheard(queueClass, error));
      this.consumers.set(queueClass, worker);
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
    const room = this.rooms.get(queueClass)!;
    if (!room.full) room.during(this.run(operationId));
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
    for (const room of this.rooms.values()) room.open();
    // What is still in Redis belongs to the other workers.
    for (const consumer of this.consumers.values()) void consumer.pause(true).catch(() => {});
    this.pauses.stop();
    await this.reconciler.stop();
    const left = new Promise(resolve => setTimeout(resolve, deadlineMs).unref());
    await Promise.race([Promise.allSettled([...this.running]), left]);
    this.leases.stop();
    if (this.running.size > 0) {
      const unanswered = this.leases.unanswered();
      const params = [this.id, unanswered.map(({ id }) => id), unanswered.map(({ ms }) => ms)];
      await this.options.database.engine(HAND_BACK, params).catch(() => {});
    }
    await this.heartbeat.stop();
    await Promise.all(this.closers.map(close => close().catch(() => {})));
    await this.doorbell.close();
  }
}
