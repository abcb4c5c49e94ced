import type { Queue } from 'bullmq';
import type { QueueClass, Ring } from '#operations/operation';
import { QUEUE_CLASSES } from '#operations/operation';
import { bullmq } from '#operations/queue/bullmq';
import { connectRedis } from '#platform/connections/redis';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';

const log = createLogger('doorbell');

/** BullMQ's `add` hangs for as long as Redis is down, whatever its options: never wait for it longer than this. */
const RING_TIMEOUT_MS = 1_000;

/** Tells workers that something is to be done. It may lose, double and delay: the reconciler makes up for it. */
export interface Doorbell {
  /** Never throws. False: surely not heard. */
  ring(rings: readonly Ring[]): Promise<boolean>;
  close(): Promise<void>;
}

/** @param host whose workers alone hear of it; null: any worker */
export const queueName = (queueClass: QueueClass, host: string | null = null): string =>
  `operations-${queueClass}${host === null ? '' : `@${host}`}`;

export class BullDoorbell implements Doorbell {
  private readonly queues = new Map<string, Queue>();
  private readonly connection;
  private lastWarning = 0;
  private readonly turn = new Turn<Ring, boolean>(rings => this.send(rings));

  constructor(
    url: string,
    private readonly prefix: string,
  ) {
    this.connection = connectRedis(url, 'ring', () => {});
    for (const queueClass of QUEUE_CLASSES) this.queue(queueName(queueClass, null));
  }

  private queue(name: string): Queue {
    let queue = this.queues.get(name);
    if (!queue) {
      const { Queue } = bullmq();
      queue = new Queue(name, { connection: this.connection, prefix: this.prefix, skipVersionCheck: true });
      queue.on('error', () => {});
      this.queues.set(name, queue);
    }
    return queue;
  }

  async ring(rings: readonly Ring[]): Promise<boolean> {
    return rings.length === 0 || this.turn.add(rings);
  }

  private async send(rings: readonly Ring[]): Promise<boolean> {
    if (this.connection.status !== 'ready') return this.unheard(`Redis is ${this.connection.status}`);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${RING_TIMEOUT_MS} ms`));
        // Whatever is on the other side, it would only collect what is sent to it.
        this.connection.disconnect(true);
      }, RING_TIMEOUT_MS);
    });
    try {
      const byQueue = Map.groupBy(rings, ring => queueName(ring.class, ring.host ?? null));
      const adds = [...byQueue].map(([name, told]) => this.queue(name).addBulk(toJobs(told)));
      await Promise.race([Promise.all(adds), late]);
      return true;
    } catch (error) {
      return this.unheard((error as Error).message);
    } finally {
      clearTimeout(timer);
    }
  }

  private unheard(reason: string): false {
    if (Date.now() - this.lastWarning > 10_000) {
      this.lastWarning = Date.now();
      log.warn({ reason }, 'Redis does not take work; operations go on by polling Postgres');
    }
    return false;
  }

  async close(): Promise<void> {
    // close() waits for a connection that may never come.
    await Promise.race([
      Promise.all([...this.queues.values()].map(queue => queue.close().catch(() => {}))),
      new Promise(resolve => setTimeout(resolve, RING_TIMEOUT_MS).unref()),
    ]);
    this.connection.disconnect();
  }
}

/** What comes together costs Redis and both its sides one job; a worker that has no room keeps no more than these waiting. */
const RINGS_A_JOB = 16;

/** What a job says: which operations to look at. */
export interface RingJob {
  operationIds: readonly string[];
}

/** Retries belong to Postgres; a finished job leaves nothing behind that could swallow the next ring. */
function toJobs(rings: readonly Ring[]): Parameters<Queue['addBulk']>[0] {
  const jobs = [];
  for (let from = 0; from < rings.length; from += RINGS_A_JOB) {
    const told = rings.slice(from, from + RINGS_A_JOB);
    const { operationId, dispatchNo } = told[0]!;
    jobs.push({
      name: 'run',
      data: { operationIds: told.map(ring => ring.operationId) } satisfies RingJob,
      opts: { jobId: `${operationId}-${dispatchNo}`, attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
  }
  return jobs;
}

/** One a class, as queues are: who hears knows which of its rooms is asked for, and the payload stays an id. */
export const ringChannel = (queueClass: QueueClass): string => `trivet_ring_${queueClass}`;
const NOTIFY_RING = sql(
  'ring',
  'SELECT pg_notify(channel, id) FROM unnest($1::text[], $2::text[]) AS ring (channel, id)',
);

/** Without Redis: a NOTIFY outside of the accepting transaction. */
export class NotifyDoorbell implements Doorbell {
  private readonly turn = new Turn<Ring, boolean>(rings => this.send(rings));

  constructor(private readonly database: Database) {}

  async ring(rings: readonly Ring[]): Promise<boolean> {
    return rings.length === 0 || this.turn.add(rings);
  }

  private async send(rings: readonly Ring[]): Promise<boolean> {
    try {
      const channels = rings.map(ring => ringChannel(ring.class));
      await this.database.call(NOTIFY_RING, [channels, rings.map(ring => ring.operationId)]);
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await this.turn.settled();
  }
}

/** Sends together what one turn of the event loop collects: under load a ring costs a fraction of a round trip. */
class Turn<Item, Result> {
  private waiting: Item[] = [];
  private flush: Promise<Result> | undefined;

  constructor(private readonly send: (items: readonly Item[]) => Promise<Result>) {}

  add(items: readonly Item[]): Promise<Result> {
    this.waiting.push(...items);
    this.flush ??= new Promise<void>(resolve => setImmediate(resolve)).then(() => {
      const taken = this.waiting;
      this.waiting = [];
      this.flush = undefined;
      return this.send(taken);
    });
    return this.flush;
  }

  async settled(): Promise<void> {
    await this.flush;
  }
}
