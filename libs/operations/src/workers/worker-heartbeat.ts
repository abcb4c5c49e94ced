import type { PeriodicTask, TaskState } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** One that is forgotten was silent for a day. Losing a beat in a crash of the database is no matter: the next one comes. */
const BEAT = sql(
  'worker_beat',
  `WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
        forgotten AS (DELETE FROM trivet.worker WHERE seen_at < now() - interval '1 day')
   INSERT INTO trivet.worker (id, host, pid, version, concurrency, running, tasks, kinds)
   SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM relaxed
   ON CONFLICT (id) DO UPDATE SET running = excluded.running, tasks = excluded.tasks, seen_at = now()`,
);
const GONE = sql('worker_gone', 'DELETE FROM trivet.worker WHERE id = $1 RETURNING id');
const BESIDE = sql('workers_beside', 'SELECT id, pid FROM trivet.worker WHERE host = $1 ORDER BY seen_at');

export interface Beating {
  id: string;
  version: string;
  /** Its host's name. */
  host: string;
  /** Of operations that it knows. */
  kinds: readonly string[];
  concurrency: number;
  /** Operations that run now. */
  running(): number;
  tasks(): readonly TaskState[];
  /** After each beat. */
  beaten?(): Promise<void>;
}

/**
 * Says every few seconds that a worker lives, and how its periodic tasks do. One that stops in order takes its row away, one
 * that dies leaves it, and who is started next on its host takes its place. So a row that is silent is a worker that nobody has
 * started again.
 */
export class Heartbeat implements PeriodicTask {
  readonly name = 'heartbeat';
  readonly everyMs = 5_000;
  readonly scope = 'worker';
  private hasBeaten = false;

  constructor(
    private readonly database: Database,
    private readonly worker: Beating,
  ) {}

  async run(): Promise<void> {
    if (!this.hasBeaten) await this.replaceOne();
    const { id, version, host, kinds, concurrency, running, tasks, beaten } = this.worker;
    const beat = [id, host, process.pid, version, concurrency, running(), JSON.stringify(tasks()), kinds];
    await this.database.engine(BEAT, beat);
    this.hasBeaten = true;
    await beaten?.();
  }

  /**
   * Of two that died, one successor leaves the other missing. A row that is taken wrongly, of a process that another
   * container of the same name has, is back with its next beat.
   */
  private async replaceOne(): Promise<void> {
    const rows = await this.database.engine<{ id: string; pid: number }>(BESIDE, [this.worker.host]);
    for (const { id } of rows.filter(({ pid }) => pid === process.pid || !isAlive(pid)))
      if ((await this.database.engine(GONE, [id])).length > 0) return;
  }

  /** After the last beat. */
  async leave(): Promise<void> {
    await this.database.engine(GONE, [this.worker.id]).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
