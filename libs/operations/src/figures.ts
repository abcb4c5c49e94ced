import { LOST_AFTER_MS } from '#operations/worker-directory';
import type { Database } from '#platform/database';
import type { EngineFigures } from '#platform/metrics';
import { sql } from '#platform/sql';
import type { WorkerFigures } from '#platform/worker-metrics';

const FIGURES = sql(
  'engine_figures',
  `SELECT coalesce(extract(epoch FROM now() - min(created_at)
            FILTER (WHERE state IN ('pending', 'running'))), 0)::float8 AS "oldestPendingSeconds",
          count(*) FILTER (WHERE state IN ('pending', 'running'))::int AS pending,
          count(*) FILTER (WHERE state = 'needs_attention')::int AS "needsAttention",
          count(*) FILTER (WHERE state = 'pending' AND backend_id = ANY (ARRAY(
            SELECT backend_id FROM trivet.backend_circuit WHERE open_until > now())))::int AS "waitingForBackend"
     FROM trivet.operation WHERE finished_at IS NULL`,
);

/** What alerts go by: how long the oldest operation has waited, and what waits for a person. */
export async function readEngineFigures(database: Database): Promise<EngineFigures> {
  const [row] = await database.engine<EngineFigures>(FIGURES);
  return row!;
}

const WORKERS = sql(
  'worker_figures',
  `SELECT (SELECT count(*) FROM trivet.worker WHERE seen_at > now() - $1 * interval '1 ms')::int AS up,
          (SELECT count(*) FROM trivet.worker WHERE seen_at <= now() - $1 * interval '1 ms')::int AS lost,
          (SELECT count(*) FROM trivet.queue WHERE paused)::int AS "pausedQueues"`,
);

export async function readWorkerFigures(database: Database): Promise<WorkerFigures> {
  const [row] = await database.engine<WorkerFigures>(WORKERS, [LOST_AFTER_MS]);
  return row!;
}
