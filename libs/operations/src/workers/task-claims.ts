import { LOST_AFTER_MS } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** Losing one in a crash of the database is no matter: what tasks do is safe whoever does it, and however often. */
const RELAXED = `relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

/**
 * $1 task $2 worker $3 ms that its last run must have begun ago $4 late after ms $5 silent for longer, a worker is dead. Of a
 * worker that has died in it the task is free at once when another one took that one's place.
 */
const CLAIM = sql(
  'task_claim',
  `WITH ${RELAXED}, claimed AS (
     INSERT INTO trivet.periodic_task AS t (name, worker_id, late_after_ms) SELECT $1, $2, $4 FROM relaxed
     ON CONFLICT (name) DO UPDATE
        SET worker_id = excluded.worker_id, begun_at = now(), late_after_ms = excluded.late_after_ms
      WHERE t.begun_at <= now() - $3::float8 * interval '1 ms'
        AND (t.worker_id IS NULL OR t.worker_id = excluded.worker_id
          OR NOT EXISTS (SELECT FROM trivet.worker w
                          WHERE w.id = t.worker_id AND w.seen_at > now() - $5 * interval '1 ms'))
     RETURNING name)
   SELECT EXISTS (SELECT FROM claimed) AS ours,
          EXISTS (SELECT FROM trivet.periodic_task WHERE name = $1 AND worker_id <> $2) AS held`,
);
const END = sql(
  'task_end',
  `WITH ${RELAXED}
   UPDATE trivet.periodic_task
      SET worker_id = NULL, error = $4, duration_ms = coalesce($3, duration_ms),
          succeeded_at = CASE WHEN $3::integer IS NULL THEN succeeded_at ELSE now() END
     FROM relaxed WHERE name = $1 AND worker_id = $2`,
);
/** What this release does not do any more would be late for ever. */
const KEEP_ONLY = sql(
  'task_keep_only',
  `DELETE FROM trivet.periodic_task
    WHERE name <> ALL ($1)
      AND NOT (split_part(name, '@', 1) = ANY ($2) AND split_part(name, '@', 2) IN (SELECT h.name FROM trivet.storage_host h))`,
);

/** Where a worker is. */
export interface TaskHost {
  readonly name: string;
  /** There are others. */
  readonly isOneOfSeveral: boolean;
}

/** Tasks that one worker does for the whole appliance, and how they do. */
export class TaskClaims {
  private ready: Promise<unknown> | undefined;

  /** @param registered the worker is in the list of workers, so that others see that it lives */
  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly workerId: string,
    private readonly registered: () => Promise<void>,
    private readonly names: readonly string[],
    /** Those of them that each host has one of. */
    private readonly ofHost: readonly string[] = [],
    private readonly host?: TaskHost,
  ) {}

  /** held: another worker does it. recent: somebody did it less than `leastMs` ago. */
  async claim(task: string, leastMs: number, lateAfterMs: number): Promise<'ours' | 'held' | 'recent'> {
    await this.prepared();
    const [row] = await this.database.engine<{ ours: boolean; held: boolean }>(CLAIM, [
      this.rowOf(task),
      this.workerId,
      leastMs,
      lateAfterMs,
      LOST_AFTER_MS,
    ]);
    if (row!.ours) return 'ours';
    return row!.held ? 'held' : 'recent';
  }

  /** @param durationMs null: it did not succeed */
  async end(task: string, durationMs: number | null, error: string | null): Promise<void> {
    await this.database.engine(END, [this.rowOf(task), this.workerId, durationMs, error]);
  }

  /** One host alone has rows as ever. */
  private rowOf(task: string): string {
    return this.host?.isOneOfSeveral && this.ofHost.includes(task) ? `${task}@${this.host.name}` : task;
  }

  private prepared(): Promise<unknown> {
    this.ready ??= this.registered()
      .then(() => this.database.engine(KEEP_ONLY, [this.names.filter(name => this.rowOf(name) === name), this.ofHost]))
      .catch(error => {
        this.ready = undefined;
        throw error;
      });
    return this.ready;
  }
}
