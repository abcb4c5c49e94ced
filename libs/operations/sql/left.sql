-- A live worker has left these attempts without an end: that is no crash (invariant E11). Still its own, an operation is handed
-- back, with its lease as it is, since a call may still take effect. Whose successor has counted a crash loses one again. What
-- was taken by a person, or handed back before, has counted none.
-- Gives those of which there was something to tell. $1 worker $2 operations, each once $3 their fences
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[]) AS given (id, fence)
), handed_back AS (
  UPDATE trivet.operation o SET lease_owner = NULL
    FROM given
   WHERE o.id = ANY ($2) AND o.id = given.id AND o.fence = given.fence AND o.lease_owner = $1 AND o.state = 'running'
  RETURNING o.tenant_id, o.id, o.attempt, given.fence
), uncounted AS (
  UPDATE trivet.operation o SET crashes = o.crashes - 1
    FROM given
   WHERE o.id = ANY ($2) AND o.id = given.id AND o.fence > given.fence AND o.crashes > 0 AND o.finished_at IS NULL
     AND EXISTS (SELECT FROM trivet.operation_event e
                  WHERE e.operation_id = o.id AND e.type = 'attempt' AND e.detail ->> 'lostBy' = $1::text
                    AND (e.detail ->> 'fence')::bigint = given.fence + 1)
     -- Told once more, because the answer was lost.
     AND NOT EXISTS (SELECT FROM trivet.operation_event e
                      WHERE e.operation_id = o.id AND e.type = 'lease_lost'
                        AND (e.detail ->> 'fence')::bigint = given.fence)
  RETURNING o.tenant_id, o.id, given.fence
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT tenant_id, id, 'lease_lost', jsonb_build_object('worker', $1::text, 'fence', fence) FROM uncounted
   UNION ALL
  -- As often as attempts are noted: so one that never comes to an end is seen in its history.
  SELECT tenant_id, id, 'lease_lost', jsonb_build_object('worker', $1::text, 'fence', fence) FROM handed_back
   WHERE attempt <= 10 OR attempt % 100 = 0
)
SELECT id FROM handed_back UNION SELECT id FROM uncounted
