import type { QueueClass } from '#operations/operation';
import type { Database } from '#platform/database';
import { sql } from '#platform/sql';

const EVERY_MS = 1_000;
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
export class QueuePauses {
  private timer: NodeJS.Timeout | undefined;
  private paused: ReadonlySet<string> = new Set();
  private looking = false;

  constructor(
    private readonly database: Database,
    private readonly takers: ReadonlyMap<QueueClass, Pausable>,
  ) {}

  start(): void {
    void this.look();
    this.timer = setInterval(() => void this.look(), EVERY_MS);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      const rows = await this.database.engine<{ class: string }>(PAUSED);
      const paused = new Set(rows.map(row => row.class));
      for (const [queueClass, taker] of this.takers) {
        if (paused.has(queueClass) === this.paused.has(queueClass)) continue;
        if (paused.has(queueClass)) taker.pause();
        else taker.resume();
      }
      this.paused = paused;
    } catch {
      // Postgres is away, and nothing can be claimed either.
    } finally {
      this.looking = false;
    }
  }
}
