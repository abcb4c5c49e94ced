import { LOST_AFTER_MS } from '#operations/workers/worker-directory';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { EngineFigures } from '#platform/metrics/metrics';
import type { WorkerFigures } from '#platform/metrics/worker-metrics';

const FIGURES = sql(
  'engine_figures',
  `SELECT coalesce(extract(epoch FROM now() - min(created_at)
            FILTER (WHERE state IN ('pending', 'running') AND kind <> 'bulk.run')), 0)::float8 AS "oldestPendingSeconds",
          count(*) FILTER (WHERE state IN ('pending', 'running'))::int AS pending,
          count(*) FILTER (WHERE state = 'needs_attention')::int AS "needsAttention",
          (SELECT json_build_object('closed', count(*) FILTER (WHERE c.state = 'closed'),
                                    'half_open', count(*) FILTER (WHERE c.state = 'half_open'),
                                    'open', count(*) FILTER (WHERE c.state = 'open'),
                                    'waiting', coalesce(sum(c.waiting), 0)) FROM trivet.circuits(NULL) AS c) AS circuits
     FROM trivet.operation WHERE finished_at IS NULL`,
);

/** What alerts go by: how long the oldest operation has waited, of all that do not wait for others as a bulk does, and what waits for a person. */
export async function readEngineFigures(database: Database): Promise<EngineFigures> {
  const [row] = await database.engine<Omit<EngineFigures, 'waitingForBackend'> & { circuits: { waiting: number } }>(
    FIGURES,
  );
  const { circuits, ...figures } = row!;
  const { waiting, ...states } = circuits;
  return { ...figures, waitingForBackend: waiting, circuits: states };
}

/**
 * An operation `o` that has waited for a minute, and that no worker knows that is up. Where one of them is of a release that does
 * not say what it knows, nobody can tell; without any worker that is what is told.
 */
export const WAITS_FOR_NOBODY = `
  o.finished_at IS NULL AND o.state = 'pending' AND o.created_at < now() - interval '1 minute'
  AND o.kind <> ALL (ARRAY(SELECT unnest(w.kinds) FROM trivet.worker w WHERE w.seen_at > now() - interval '${LOST_AFTER_MS} ms'))
  AND EXISTS (SELECT FROM trivet.worker w WHERE w.seen_at > now() - interval '${LOST_AFTER_MS} ms')
  AND NOT EXISTS (SELECT FROM trivet.worker w WHERE w.seen_at > now() - interval '${LOST_AFTER_MS} ms' AND w.kinds IS NULL)`;

const WORKERS = sql(
  'worker_figures',
  `WITH unserved AS MATERIALIZED (
     SELECT CASE WHEN lease_until = '-infinity' OR to_fence <> '[]' THEN coalesce(unserved_since, claimed_at) ELSE lease_until END AS since
       FROM trivet.pool_home
      WHERE cluster AND lease_until IS NOT NULL AND (lease_until < now() OR to_fence <> '[]')
   )
   SELECT (SELECT count(*) FROM trivet.worker WHERE seen_at > now() - $1 * interval '1 ms')::int AS up,
          (SELECT count(*) FROM trivet.worker WHERE seen_at <= now() - $1 * interval '1 ms')::int AS lost,
          (SELECT count(*) FROM trivet.queue WHERE paused)::int AS "pausedQueues",
          (SELECT count(*) FROM trivet.operation o WHERE ${WAITS_FOR_NOBODY})::int AS "unknownKinds",
          (SELECT count(*) FROM unserved)::int AS "poolsUnserved",
          (SELECT coalesce(max(extract(epoch FROM now() - since)), 0) FROM unserved)::float8 AS "oldestUnservedSeconds",
          h.*
     FROM (SELECT json_build_object('up', count(*) FILTER (WHERE silent_ms <= $1),
                                    'down', count(*) FILTER (WHERE silent_ms > $1 AND home_of > 0),
                                    'gone', count(*) FILTER (WHERE silent_ms > $1 AND home_of = 0)) AS "storageHosts",
                  count(*) FILTER (WHERE draining)::int AS "drainingHosts",
                  count(DISTINCT release) FILTER (WHERE silent_ms <= $1)::int AS "hostReleases",
                  coalesce(min(memory_free_bytes) FILTER (WHERE silent_ms <= $1), 0)::float8 AS "leastMemoryFree",
                  coalesce(sum(jsonb_array_length(reach -> 'foreign')) FILTER (WHERE silent_ms <= $1), 0)::int AS "poolsElsewhere",
                  coalesce(sum(jsonb_array_length(reach -> 'absent')) FILTER (WHERE silent_ms <= $1), 0)::int AS "poolsAbsent",
                  coalesce(sum(waiting), 0)::int AS "waitingForHost"
             FROM trivet.list_storage_hosts()) AS h`,
);
const LATE = sql(
  'late_tasks',
  'SELECT count(*)::int AS late FROM trivet.list_tasks($1) WHERE silent_ms > late_after_ms',
);

export async function readWorkerFigures(database: Database): Promise<WorkerFigures> {
  const [row] = await database.engine<WorkerFigures>(WORKERS, [LOST_AFTER_MS]);
  return row!;
}

export async function readLateTasks(database: Database): Promise<{ late: number }> {
  const [row] = await database.engine<{ late: number }>(LATE, [LOST_AFTER_MS]);
  return row!;
}
