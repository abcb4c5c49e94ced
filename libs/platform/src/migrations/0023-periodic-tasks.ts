import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const TASKS = `
-- Of those that each worker does by itself, as it said with its last heartbeat: times are ms before that.
ALTER TABLE trivet.worker ADD COLUMN tasks jsonb NOT NULL DEFAULT '[]';

-- What one worker at a time does for the whole appliance.
CREATE TABLE trivet.periodic_task (
  name text PRIMARY KEY,
  -- Who does it now; of no meaning once that worker is silent or gone.
  worker_id uuid,
  begun_at timestamptz NOT NULL DEFAULT now(),
  succeeded_at timestamptz,
  -- Of the last success.
  duration_ms integer,
  -- Of the last run, unless it succeeded.
  error text,
  late_after_ms bigint NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON trivet.periodic_task TO trivet_engine;

-- Periodic tasks of the workers that said something within p_alive_ms. silent_ms: since the last success, or since somebody
-- could have had one.
CREATE FUNCTION trivet.list_tasks(p_alive_ms double precision)
RETURNS TABLE (name text, scope text, worker_id uuid, succeeded_at timestamptz, duration_ms integer, error text,
               late_after_ms bigint, silent_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH alive AS (
    SELECT id, tasks, started_at, seen_at, extract(epoch FROM now() - seen_at)::double precision * 1000 AS ms
      FROM trivet.worker WHERE seen_at > now() - p_alive_ms * interval '1 ms'
  )
  SELECT t.name, 'worker', w.id,
         CASE WHEN t."hasSucceeded" THEN w.seen_at - t."silentMs" * interval '1 ms' END,
         t."durationMs", t.error, t."lateAfterMs", w.ms + t."silentMs"
    FROM alive w,
         jsonb_to_recordset(w.tasks) AS t (name text, "hasSucceeded" boolean, "silentMs" double precision,
                                           "durationMs" integer, error text, "lateAfterMs" bigint)
   UNION ALL
  SELECT p.name, 'appliance', p.worker_id, p.succeeded_at, p.duration_ms, p.error, p.late_after_ms,
         extract(epoch FROM now() - greatest(p.succeeded_at, up.since))::double precision * 1000
    FROM trivet.periodic_task p, (SELECT min(started_at) AS since FROM alive) up
   WHERE up.since IS NOT NULL;
$$;
REVOKE EXECUTE ON FUNCTION trivet.list_tasks FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.list_tasks TO trivet_app, trivet_engine;
`;

/** What workers do without being asked, and how it does. */
export class PeriodicTasks1796947200000 implements Migration {
  readonly locks: Migration['locks'] = {
    worker: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TASKS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.list_tasks');
    await runner.query('DROP TABLE trivet.periodic_task');
    await runner.query('ALTER TABLE trivet.worker DROP COLUMN tasks');
  }
}
