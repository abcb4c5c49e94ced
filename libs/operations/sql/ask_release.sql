-- Takes it from its worker. Whatever that one writes from now on is refused: the operation is not running, and the next
-- claim has a higher fence. What it may have sent to a backend counts as unanswered, so nobody touches the resources
-- before its lease would have ended by itself (invariant E5).
-- $1 tenant $2 operation $3 detail of the event
WITH held AS (
  SELECT id, lease_owner, lease_until FROM trivet.operation
   WHERE tenant_id = $1 AND id = $2 AND state = 'running' FOR UPDATE
), released AS (
  UPDATE trivet.operation o
     SET state = 'pending', lease_owner = NULL, lease_until = NULL, place = NULL,
         next_run_at = greatest(now(), held.lease_until)
    FROM held
   WHERE o.tenant_id = $1 AND o.id = $2
  RETURNING o.id, held.lease_owner, held.lease_until
), slots AS (
  UPDATE trivet.operation_slot s
     SET held = false, busy_until = CASE WHEN released.lease_until > now() THEN released.lease_until END
    FROM released
   WHERE s.tenant_id = $1 AND s.operation_id = released.id
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, id, 'released', $3::jsonb || jsonb_build_object('worker', lease_owner) FROM released
)
SELECT id FROM released
