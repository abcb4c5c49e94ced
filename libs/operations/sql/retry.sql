-- An attempt failed and another may help: back into the line, visible with its error and its time. Slots are free for
-- others meanwhile, unless a call went unanswered: then until its horizon. $10 parks it for a person instead; it keeps
-- its place at its own resource only, where a negation may still overtake it. What a negation has overtaken already is not
-- parked: it comes up once more, only to end as cancelled. What a person has stopped may fail to undo itself, and parks.
-- The same error again is no event: an outage of a day would write millions. The attempt counts, and next_run_at shows.
-- $1 tenant $2 operation $3 fence $4 worker (a fence may repeat: ADR 30) $5 error $6 delay in ms $7 busy for ms (0: not) $8 step $9 progress (NULL: as it is) $10 park
WITH before AS (
  SELECT error ->> 'message' AS message FROM trivet.operation WHERE tenant_id = $1 AND id = $2
), failed AS (
  UPDATE trivet.operation
     SET state = CASE WHEN $10::boolean AND (cancel_requested_at IS NULL OR cancel_by IS NOT NULL) THEN 'needs_attention' ELSE 'pending' END, error = $5, step = $8, progress = coalesce($9, progress),
         next_run_at = now() + greatest($6::int, $7::int) * interval '1 ms',
         lease_owner = NULL, lease_until = NULL, place = NULL, losses = 0
   WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND lease_owner = $4 AND state = 'running' AND lease_until > now()
  RETURNING id, waited, state
), released AS (
  UPDATE trivet.operation_slot s
     SET held = false, busy_until = CASE WHEN $7::int > 0 THEN now() + $7::int * interval '1 ms' END,
         parked = failed.state = 'needs_attention' AND NOT own
    FROM failed
   WHERE s.tenant_id = $1 AND s.operation_id = failed.id
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, $2, CASE state WHEN 'pending' THEN 'retry' ELSE state END,
         jsonb_build_object('error', $5::jsonb, 'delayMs', greatest($6::int, $7::int))
    FROM failed
   WHERE state <> 'pending' OR (SELECT message FROM before) IS DISTINCT FROM $5::jsonb ->> 'message'
)
SELECT trivet.fenced(max(state)) AS state, count(CASE WHEN waited THEN pg_notify('trivet_done', id::text) END)
  FROM failed
