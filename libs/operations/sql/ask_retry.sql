-- Now, or as soon as a call of its last attempt that went unanswered can have no effect any more; with its counts begun anew.
-- $1 tenant $2 operation $3 detail of the event
WITH retried AS (
  UPDATE trivet.operation
     SET state = 'pending', attempt = 0, crashes = 0, losses = 0,
         next_run_at = greatest(now(), (SELECT max(busy_until) FROM trivet.operation_slot
                                         WHERE tenant_id = $1 AND operation_id = $2))
   WHERE tenant_id = $1 AND id = $2 AND state IN ('pending', 'needs_attention')
  RETURNING id
), slots AS (
  UPDATE trivet.operation_slot SET parked = false
   WHERE tenant_id = $1 AND operation_id = ANY (ARRAY(SELECT id FROM retried)) AND parked
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, id, 'retry_asked', $3::jsonb FROM retried
)
SELECT id FROM retried
