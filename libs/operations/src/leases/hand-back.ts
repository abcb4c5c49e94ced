import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';

/**
 * $1 worker $2 operations with an unanswered call $3 for how many ms that may still take effect. Until then nobody else
 * touches their resources (invariant E5); all others go on at once. Who is running has a place: so it reads those that have one.
 */
const HAND_BACK = sql(
  'hand_back',
  `UPDATE trivet.operation o
      SET lease_owner = NULL, dispatched_at = now() - interval '1 hour',
          lease_until = least(lease_until, now() + interval '1 ms' * coalesce(
            (SELECT ms FROM unnest($2::uuid[], $3::float8[]) AS unanswered (id, ms) WHERE unanswered.id = o.id), 0))
    WHERE lease_owner = $1 AND state = 'running' AND lease_until > now()`,
);

/** Whatever the worker holds goes back: its fence stays, so that it can write nothing from then on. */
export async function handBack(
  database: Pick<Database, 'engine'>,
  workerId: string,
  unanswered: readonly { id: string; ms: number }[],
): Promise<void> {
  await database.engine(HAND_BACK, [workerId, unanswered.map(({ id }) => id), unanswered.map(({ ms }) => ms)]);
}
