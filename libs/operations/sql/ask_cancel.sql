-- A person asks it to stop. It does so between two steps and undoes what it did, which takes a worker also when none has it:
-- only an attempt knows what there is to undo. A negation that has asked already does more than this.
-- $1 tenant $2 operation $3 kinds that can be undone $4 who $5 detail of the event
WITH asked AS (
  UPDATE trivet.operation
     SET cancel_requested_at = now(), cancel_by = $4, crashes = 0, losses = 0,
         state = CASE state WHEN 'running' THEN state ELSE 'pending' END,
         next_run_at = CASE state WHEN 'running' THEN next_run_at ELSE
           greatest(now(), (SELECT max(busy_until) FROM trivet.operation_slot
                             WHERE tenant_id = $1 AND operation_id = $2)) END
   WHERE tenant_id = $1 AND id = $2 AND kind = ANY ($3) AND state IN ('pending', 'running', 'needs_attention')
     AND cancel_requested_at IS NULL
  RETURNING id
), slots AS (
  UPDATE trivet.operation_slot SET parked = false
   WHERE tenant_id = $1 AND operation_id = ANY (ARRAY(SELECT id FROM asked)) AND parked
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, id, 'cancel_requested', $5::jsonb FROM asked
)
SELECT id FROM asked
