import type { QueueClass } from '#operations/operation';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { ToldChanges } from '#platform/database/told-changes';

const PAUSED = sql('queues_paused', 'SELECT class FROM trivet.queue WHERE paused');

/** What takes rings of a class. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/**
 * Follows which classes a person has paused. Claims and reconcilers look at the same rows by themselves, so that nothing of
 * a paused class begins whatever this has seen; it only keeps its rings where they are until they mean something again.
 */
export class QueuePauses implements PeriodicTask {
  readonly name = 'queue-pauses';
  readonly everyMs = 1_000;
  readonly scope = 'worker';
  /** Told by `ToldChanges`. */
  readonly calm = 10;
  private paused: ReadonlySet<string> = new Set();

  constructor(
    private readonly database: Database,
    private readonly takers: ReadonlyMap<QueueClass, Pausable>,
    private readonly told: Pick<ToldChanges, 'isConnected'>,
  ) {}

  async run(): Promise<'calm' | undefined> {
    const isTold = this.told.isConnected;
    const rows = await this.database.engine<{ class: string }>(PAUSED);
    const paused = new Set(rows.map(row => row.class));
    for (const [queueClass, taker] of this.takers) {
      if (paused.has(queueClass) === this.paused.has(queueClass)) continue;
      if (paused.has(queueClass)) taker.pause();
      else taker.resume();
    }
    this.paused = paused;
    return isTold ? 'calm' : undefined;
  }
}
