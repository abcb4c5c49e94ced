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
const GONE = sql('worker_gone', 'DELETE FROM trivet.worker WHERE id = $1');

export interface Beating {
  id: string;
  version: string;
  concurrency: number;
  /** Operations that run now. */
  running(): number;
}

/** Says every few seconds that a worker lives; one that stops in order takes its row away, one that dies leaves it. */
export class Heartbeat {
  private timer: NodeJS.Timeout | undefined;
  private beating: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly worker: Beating,
  ) {}

  start(): void {
    this.beat();
    this.timer = setInterval(() => this.beat(), EVERY_MS);
    this.timer.unref();
  }

  async stop(): Promise<void> {
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
