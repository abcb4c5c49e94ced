import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import { createLogger } from '#platform/logging/log';
import { talliesMendedTotal } from '#platform/metrics/worker-metrics';

const log = createLogger('tallies');

/** Read by one statement. */
const PORTION = 500;
/** Read in a run, and steps that it takes, of which each costs something beside the rows. */
const ROWS = 2_000;
const STEPS = 20;
/** What was compared is so after this time again, or when all else was. */
const AGAIN_MS = 3_600_000;
const CALM = 6;

const NEXT = sql(
  'tally_next',
  'SELECT tenant_id AS "tenantId", kind FROM trivet.tallies_to_compare($1::float8, $2::int)',
);
const STEP = sql(
  'tally_step',
  `SELECT progress, looked, kind, backend_id AS "backendId", pool, things::text AS things, bytes::text AS bytes
     FROM trivet.tally_step($1, $2, $3)`,
);

const FAILED = sql('tally_failed', 'SELECT FROM trivet.tally_failed($1, $2)');

/** The step's end, or what a tally lacked, and has now. */
interface Told {
  progress: 'done' | 'open' | 'waits' | 'portion' | null;
  looked: number;
  kind: string;
  backendId: string;
  pool: string;
  things: string;
  bytes: string;
}

/**
 * Compares tallies with what is there, and sets right those that differ, which only a defect can make: it is logged, and counted
 * for an alert. A run reads a bounded number of rows however many there are; where it is stands in the database.
 */
export class TallyCheck {
  readonly name = 'tally-check';
  readonly everyMs = 5_000;
  readonly scope = 'appliance';
  readonly calm = CALM;

  constructor(
    private readonly database: Pick<Database, 'engine'>,
    private readonly bounds = { portion: PORTION, rows: ROWS, steps: STEPS, againMs: AGAIN_MS },
  ) {}

  async run(signal: AbortSignal): Promise<'calm' | undefined> {
    const { rows, steps, againMs } = this.bounds;
    const next = await this.database.engine<{ tenantId: string; kind: string }>(NEXT, [againMs, steps]);
    const errors: unknown[] = [];
    let left = rows;
    let stepsLeft = steps;
    for (const { tenantId, kind } of next) {
      let goesOn = true;
      while (goesOn && left > 0 && stepsLeft > 0 && !signal.aborted) {
        stepsLeft--;
        try {
          const { progress, looked } = await this.step(tenantId, kind);
          left -= looked;
          goesOn = progress === 'open' || progress === 'portion';
        } catch (error) {
          // One that cannot be counted does not keep the others waiting, in the next runs neither.
          errors.push(error);
          await this.database.engine(FAILED, [tenantId, kind]);
          goesOn = false;
        }
      }
    }
    if (errors.length > 0)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'tallies were not counted');
    return next.length === 0 ? 'calm' : undefined;
  }

  private async step(tenantId: string, kind: string): Promise<Told> {
    const told = await this.database.engine<Told>(STEP, [tenantId, kind, this.bounds.portion]);
    for (const { progress, looked: _, ...lacking } of told) {
      if (progress !== null) continue;
      talliesMendedTotal.inc({ kind });
      log.error({ tenantId, ...lacking }, 'a tally differed from what is there, and was set right: a defect');
    }
    return told.find(({ progress }) => progress !== null)!;
  }
}
