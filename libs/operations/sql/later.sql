-- An attempt has done what it could: what is left is done by others, and it looks again later. Back into the line, without an error, and
-- with its slots free; at once when it was asked to stop meanwhile. Who has moved something has its crashes counted anew. Looks are no
-- attempts to count: from the tenth on the line has no event of each (claim.sql), and an error is not taken for one after thousands.
-- $1 tenant $2 operation $3 fence $4 worker (a fence may repeat: ADR 30) $5 step $6 progress $7 delay in ms $8 moved
WITH waits AS (
  UPDATE trivet.operation
     SET state = 'pending', error = NULL, step = $5, progress = $6,
         attempt = least(attempt, 10), crashes = CASE WHEN $8::boolean THEN 0 ELSE crashes END,
         next_run_at = CASE WHEN cancel_requested_at IS NULL THEN now() + $7::int * interval '1 ms' ELSE now() END,
         lease_owner = NULL, lease_until = NULL, place = NULL, losses = 0
   WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND lease_owner = $4 AND state = 'running' AND lease_until > now()
  RETURNING id
), released AS (
  UPDATE trivet.operation_slot s SET held = false, busy_until = NULL
    FROM waits
   WHERE s.tenant_id = $1 AND s.operation_id = waits.id
)
SELECT trivet.fenced(max(id::text)) AS id FROM waits
