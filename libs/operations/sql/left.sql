-- A live worker has left these attempts without an end: that is no crash (invariant E11). Still its own, an operation is handed
-- back, with its lease as it is, since a call may still take effect. Whose successor has counted a crash loses one again. What
-- was taken by a person, or handed back before, has counted none. Of a claim without an answer the worker knows no fence: that is
-- whatever is its own, and it does not know of, and each crash that was counted for it.
-- Each is one lease more that was lost in a row, unless the last one found less progress. The step does not count: each attempt
-- begins at the first one.
-- Gives those of which there was something to tell. $1 worker $2 operations, each once $3 their fences, NULL: not known
-- $4 the fences that it holds of them now, NULL: none
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS given (id, fence, held)
), handed_back AS (
  UPDATE trivet.operation o
     SET lease_owner = NULL, lost_progress = md5(o.progress::text),
         losses = CASE WHEN o.lost_progress = md5(o.progress::text) THEN o.losses + 1 ELSE 1 END
    FROM given
   WHERE o.id = ANY ($2) AND o.id = given.id AND o.lease_owner = $1 AND o.state = 'running'
     AND (o.fence = given.fence OR given.fence IS NULL AND o.fence IS DISTINCT FROM given.held)
  RETURNING o.tenant_id, o.id, o.step, o.attempt, o.losses, o.fence
), untold AS MATERIALIZED (
  SELECT e.operation_id, (e.detail ->> 'fence')::bigint - 1 AS fence, e.detail ->> 'lostAt' AS step
    FROM given JOIN trivet.operation_event e ON e.operation_id = given.id
   WHERE e.operation_id = ANY ($2) AND e.type = 'attempt' AND e.detail ->> 'lostBy' = $1::text
     AND (given.fence IS NULL OR (e.detail ->> 'fence')::bigint = given.fence + 1)
     -- Told once more, because the answer was lost.
     AND NOT EXISTS (SELECT FROM trivet.operation_event told
                      WHERE told.operation_id = e.operation_id AND told.type = 'lease_lost'
                        AND (told.detail ->> 'fence')::bigint + 1 = (e.detail ->> 'fence')::bigint)
), uncounted AS (
  UPDATE trivet.operation o
     SET crashes = greatest(o.crashes - counted.times, 0), lost_progress = md5(o.progress::text),
         losses = CASE WHEN o.lost_progress = md5(o.progress::text) THEN o.losses + 1 ELSE 1 END
    FROM (SELECT operation_id, count(*)::int AS times FROM untold GROUP BY operation_id) AS counted
   WHERE o.id = ANY ($2) AND o.id = counted.operation_id AND o.crashes > 0 AND o.finished_at IS NULL
     AND o.id NOT IN (SELECT id FROM handed_back)
  RETURNING o.tenant_id, o.id
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT tenant_id, id, 'lease_lost', jsonb_build_object('worker', $1::text, 'fence', fence, 'step', step)
    FROM uncounted JOIN untold ON operation_id = id
   UNION ALL
  -- As often as attempts are noted, and where the runner gives up: so one that never comes to an end is seen in its history.
  SELECT tenant_id, id, 'lease_lost', jsonb_build_object('worker', $1::text, 'fence', fence, 'step', step)
    FROM handed_back WHERE attempt <= 10 OR attempt % 100 = 0 OR losses % 100 = 0
)
SELECT id FROM handed_back UNION SELECT id FROM uncounted
