import { hostname } from 'node:os';
import type { Database } from '#platform/database';
import { createLogger } from '#platform/log';
import { sql } from '#platform/sql';

const log = createLogger('heartbeat');

const EVERY_MS = 5_000;

/** One that is forgotten was silent for a day. Losing a beat in a crash of the database is no matter: the next one comes. */
const BEAT = sql(
  'worker_beat',
  `WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
        forgotten AS (DELETE FROM trivet.worker WHERE seen_at < now() - interval '1 day')
   INSERT INTO trivet.worker (id, host, pid, version, concurrency, running)
   SELECT $1, $2, $3, $4, $5, $6 FROM relaxed
   ON CONFLICT (id) DO UPDATE SET running = excluded.running, seen_at = now()`,
);
const GONE = sql('worker_gone', 'DELETE FROM trivet.worker WHERE id = $1 RETURNING id');
const BESIDE = sql('workers_beside', 'SELECT id, pid FROM trivet.worker WHERE host = $1 ORDER BY seen_at');

export interface Beating {
  id: string;
  version: string;
  concurrency: number;
  /** Operations that run now. */
  running(): number;
}

/**
 * Says every few seconds that a worker lives. One that stops in order takes its row away, one that dies leaves it, and who is
 * started next on its host takes its place. So a row that is silent is a worker that nobody has started again.
 */
export class Heartbeat {
  private timer: NodeJS.Timeout | undefined;
  private beating: Promise<void> | undefined;
  private stopped = false;

  constructor(
    private readonly database: Database,
    private readonly worker: Beating,
  ) {}

  start(): void {
    this.beating = this.replaceOne().finally(() => {
      this.beating = undefined;
      if (!this.stopped) this.beat();
    });
    this.timer = setInterval(() => this.beat(), EVERY_MS);
    this.timer.unref();
  }

  /**
   * Of two that died, one successor leaves the other missing. A row that is taken wrongly, of a process that another
   * container of the same name has, is back with its next beat.
   */
  private async replaceOne(): Promise<void> {
    try {
      const rows = await this.database.engine<{ id: string; pid: number }>(BESIDE, [hostname()]);
      for (const { id } of rows.filter(({ pid }) => pid === process.pid || !isAlive(pid)))
        if ((await this.database.engine(GONE, [id])).length > 0) return;
    } catch (error) {
      log.debug({ err: error }, 'a killed worker was not replaced in the list');
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.timer);
    await this.beating;
    await this.database.engine(GONE, [this.worker.id]).catch(() => {});
  }

  private beat(): void {
    const { id, version, concurrency, running } = this.worker;
    this.beating ??= this.database
      .engine(BEAT, [id, hostname(), process.pid, version, concurrency, running()])
      .then(
        () => {},
        error => log.debug({ err: error }, 'a heartbeat was not written'),
      )
      .finally(() => {
        this.beating = undefined;
      });
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
