import { setTimeout as delay } from 'node:timers/promises';
import type { PeriodicTask } from '#operations/periodic/periodic-task';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/** A transaction of some hundredths of a second. */
const PORTION = 1_000;
const ROUND_MS = 60_000;

/** From where the last portion ended: what is deleted stays in the index until a vacuum, and would be passed over each time. */
const PRUNE = sql(
  'prune',
  `WITH due AS (
     SELECT tenant_id, id, finished_at FROM trivet.operation
      WHERE finished_at >= $2::timestamptz AND finished_at < now() - interval '30 days' ORDER BY finished_at LIMIT $1
   ), gone AS (
     DELETE FROM trivet.operation o USING due WHERE o.tenant_id = due.tenant_id AND o.id = due.id)
   SELECT count(*)::int AS due, max(finished_at)::text AS last FROM due`,
);

/** Of the same portion: a bulk has up to 10,000, and they would all go with its operation. */
const FORGET_ITEMS = sql('forget_bulk_items', 'SELECT trivet.forget_bulk_items($1, $2) AS gone');

export interface RetentionOptions {
  portion?: number;
  roundMs?: number;
}

/**
 * Operations that ended 30 days ago are forgotten, as many as there are, by one worker. It rests as long as it works, so that
 * what else the database does goes on (ADR 25).
 */
export const operationRetention = (
  database: Pick<Database, 'engine'>,
  { portion = PORTION, roundMs = ROUND_MS }: RetentionOptions = {},
): PeriodicTask => ({
  name: 'operation-retention',
  everyMs: 3_600_000,
  scope: 'appliance',
  async run(signal) {
    const until = performance.now() + roundMs;
    let from = '-infinity';
    while (!signal.aborted) {
      const began = performance.now();
      const [forgotten] = await database.engine<{ gone: number }>(FORGET_ITEMS, [portion, from]);
      if (forgotten!.gone === portion) {
        if (performance.now() >= until) return 'more';
        await rest(began, signal);
        continue;
      }
      const [pruned] = await database.engine<{ due: number; last: string | null }>(PRUNE, [portion, from]);
      const { due, last } = pruned!;
      if (last === null || due < portion) return undefined;
      from = last;
      if (performance.now() >= until) return 'more';
      await rest(began, signal);
    }
    return undefined;
  },
});

/** As long as it worked. */
const rest = (began: number, signal: AbortSignal): Promise<void> =>
  delay(performance.now() - began, undefined, { signal }).catch(() => {});
