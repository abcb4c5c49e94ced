-- A negation asks what it negates to stop. Running: it answers at its next step boundary. Otherwise it is over now.
-- Whatever call of it may still be under way is waited out: until when, accept.sql reads in the same transaction.
-- $1 tenant $2 resource $3 kinds that are negated
WITH victim AS (
  UPDATE trivet.operation
     SET cancel_requested_at = now(), cancel_by = NULL,
         state = CASE state WHEN 'running' THEN state ELSE 'cancelled' END,
         finished_at = CASE state WHEN 'running' THEN NULL ELSE now() END,
         place = CASE state WHEN 'running' THEN place END
   WHERE (tenant_id = $1) IS TRUE AND resource_id = $2 AND kind = ANY ($3) AND state IN ('pending', 'running', 'needs_attention')
  RETURNING id, state, waited
), released AS (
  DELETE FROM trivet.operation_slot s USING victim
   WHERE s.tenant_id = $1 AND s.operation_id = victim.id AND victim.state = 'cancelled'
  RETURNING s.busy_until
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type)
  SELECT $1, id, CASE state WHEN 'running' THEN 'cancel_requested' ELSE 'cancelled' END FROM victim
)
SELECT set_config('trivet.busy_until', coalesce((SELECT max(busy_until) FROM released)::text, ''), true) AS busy_until,
       (SELECT count(pg_notify('trivet_done', id::text)) FROM victim WHERE state = 'cancelled' AND waited) AS notified
