import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

export interface Minute {
  at: Date;
  ended: number;
  failed: number;
}

/** How much there is to do, and how much is done. */
export interface Load {
  waiting: number;
  running: number;
  /** Wait for a person. */
  parked: number;
  /** Those, and those that have failed more than three times. */
  stuck: number;
  /** That no worker has, because their backend does not answer. */
  waitingForBackend: number;
  oldestWaitingMs: number | null;
  /** Ended, over the last minute. */
  perSecond: number;
  /** Of each minute of the last hour, oldest first. */
  trend: Minute[];
}

interface EndedRow {
  tenantId: string;
  minute: string;
  ended: number;
  failed: number;
  last: number;
}

interface UnfinishedRow {
  tenantId: string;
  waiting: number;
  running: number;
  parked: number;
  stuck: number;
  oldestWaitingMs: number | null;
}

interface CircuitRow {
  tenantId: string;
  waiting: number;
}

type Counts = Map<string, { ended: number; failed: number }>;

const ENDED = sql(
  'load_ended',
  `SELECT tenant_id AS "tenantId", extract(epoch FROM date_trunc('minute', finished_at))::bigint::text AS minute,
          count(*)::int AS ended, count(*) FILTER (WHERE state = 'failed')::int AS failed,
          count(*) FILTER (WHERE finished_at > now() - interval '60 s')::int AS last
     FROM trivet.operation WHERE finished_at >= $1 GROUP BY 1, 2`,
);
const UNFINISHED = sql(
  'load_unfinished',
  `SELECT tenant_id AS "tenantId", count(*) FILTER (WHERE state = 'pending')::int AS waiting,
          count(*) FILTER (WHERE state = 'running')::int AS running,
          count(*) FILTER (WHERE state = 'needs_attention')::int AS parked,
          count(*) FILTER (WHERE error IS NOT NULL AND (state = 'needs_attention' OR attempt > 3))::int AS stuck,
          extract(epoch FROM now() - min(created_at) FILTER (WHERE state = 'pending' AND kind <> 'bulk.run'))::float8 * 1000 AS "oldestWaitingMs"
     FROM trivet.operation WHERE finished_at IS NULL GROUP BY 1`,
);
const CIRCUITS = sql(
  'load_circuits',
  `SELECT tenant_id AS "tenantId", sum(waiting)::int AS waiting FROM trivet.circuits(NULL) WHERE waiting > 0 GROUP BY 1`,
);

const FRESH_MS = 5_000;
const MINUTE_MS = 60_000;
const MINUTES = 60;
/** What is older has been counted with all that ended in it: an end commits within seconds of its time. */
const OPEN_MINUTES = 2;

/**
 * One look at the database each few seconds, for all tenants and whoever asks. Minutes that are over are counted once and
 * kept: a look reads what ended in the last two, and not the hour.
 */
export class OperationLoad {
  private readonly minutes = new Map<number, Counts>();
  private last = new Map<string, number>();
  private unfinished: readonly UnfinishedRow[] = [];
  private circuits: readonly CircuitRow[] = [];
  private lookedAt = Number.NEGATIVE_INFINITY;
  private looking: Promise<void> | undefined;

  constructor(private readonly database: Database) {}

  /** Of one tenant, or of all. */
  async read(tenantId?: string): Promise<Load> {
    if (performance.now() - this.lookedAt > FRESH_MS) {
      this.looking ??= this.look().finally(() => {
        this.looking = undefined;
      });
      await this.looking;
    }
    const mine = <T extends { tenantId: string }>(rows: readonly T[]) =>
      rows.filter(row => tenantId === undefined || row.tenantId === tenantId);
    const rows = mine(this.unfinished);
    const sum = (key: 'waiting' | 'running' | 'parked' | 'stuck') => rows.reduce((total, row) => total + row[key], 0);
    const oldest = rows.flatMap(({ oldestWaitingMs }) => oldestWaitingMs ?? []);
    const ended = mine([...this.last].map(([id, count]) => ({ tenantId: id, count })));
    const newest = minuteOf(Date.now());
    return {
      waiting: sum('waiting'),
      running: sum('running'),
      parked: sum('parked'),
      stuck: sum('stuck'),
      waitingForBackend: mine(this.circuits).reduce((total, { waiting }) => total + waiting, 0),
      oldestWaitingMs: oldest.length > 0 ? Math.max(0, ...oldest) : null,
      perSecond: ended.reduce((total, { count }) => total + count, 0) / 60,
      trend: Array.from({ length: MINUTES }, (_, n) => {
        const at = newest - (MINUTES - 1 - n) * MINUTE_MS;
        const counts = mine([...(this.minutes.get(at) ?? [])].map(([id, count]) => ({ tenantId: id, ...count })));
        return {
          at: new Date(at),
          ended: counts.reduce((total, count) => total + count.ended, 0),
          failed: counts.reduce((total, count) => total + count.failed, 0),
        };
      }),
    };
  }

  private async look(): Promise<void> {
    const now = minuteOf(Date.now());
    const known = [...this.minutes.keys()];
    const from = Math.max(
      now - MINUTES * MINUTE_MS,
      known.length > 0 ? Math.max(...known) - OPEN_MINUTES * MINUTE_MS : 0,
    );
    const [ended, unfinished, circuits] = await Promise.all([
      this.database.engine<EndedRow>(ENDED, [new Date(from)]),
      this.database.engine<UnfinishedRow>(UNFINISHED),
      this.database.engine<CircuitRow>(CIRCUITS),
    ]);
    for (const minute of known) if (minute >= from || minute < now - MINUTES * MINUTE_MS) this.minutes.delete(minute);
    // So that a minute in which nothing ended is known too.
    this.minutes.set(now, new Map());
    this.last = new Map();
    for (const { tenantId, minute, ended: count, failed, last } of ended) {
      const at = Number(minute) * 1_000;
      if (!this.minutes.has(at)) this.minutes.set(at, new Map());
      this.minutes.get(at)!.set(tenantId, { ended: count, failed });
      this.last.set(tenantId, (this.last.get(tenantId) ?? 0) + last);
    }
    this.unfinished = unfinished;
    this.circuits = circuits;
    this.lookedAt = performance.now();
  }
}

const minuteOf = (ms: number): number => ms - (ms % MINUTE_MS);
