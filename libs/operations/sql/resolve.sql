-- Ends one that waits for a person, as failed; it is locked by this transaction. The fence grows once more, so that whatever
-- held it last has lost it.
-- $1 tenant $2 operation $3 detail of the event
WITH resolved AS (
  UPDATE trivet.operation
     SET state = 'failed', finished_at = now(), place = NULL, fence = fence + 1
   WHERE tenant_id = $1 AND id = $2 AND state = 'needs_attention'
  RETURNING id, waited
), released AS (
  DELETE FROM trivet.operation_slot WHERE tenant_id = $1 AND operation_id = ANY (ARRAY(SELECT id FROM resolved))
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, id, 'resolved', $3::jsonb FROM resolved
)
SELECT id, count(CASE WHEN waited THEN pg_notify('trivet_done', id::text) END) AS told FROM resolved GROUP BY id
