-- A second look at one line, for those whom nobody's end may have seen: the next at each of these resources, and the next
-- that wait for room, as far as there are free places.
-- $1 tenant $2 backend $3 class $4 resources $5 cap
WITH room AS (
  SELECT greatest(0, $5::int - count(*)) AS n
    FROM trivet.operation
   WHERE tenant_id = $1 AND backend_id = $2 AND class = $3 AND place IS NOT NULL
), line AS MATERIALIZED (
  SELECT operation_id, resource_id, slot, priority, seq
    FROM trivet.operation_slot
   WHERE resource_id = ANY ($4) AND (tenant_id = $1) IS TRUE
), ready AS MATERIALIZED (
  SELECT id FROM trivet.operation
   WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT operation_id FROM line)) AND state = 'pending' AND next_run_at <= now()
     AND (error IS NULL OR NOT trivet.waits_for_pool(tenant_id, backend_id, error))
), next_in_line AS (
  SELECT DISTINCT ON (resource_id, slot) operation_id
    FROM line
   WHERE operation_id IN (SELECT id FROM ready)
   ORDER BY resource_id, slot, priority DESC, seq
), next_with_room AS (
  SELECT o.id
    FROM trivet.operation o
   WHERE o.tenant_id = $1 AND o.backend_id = $2 AND o.class = $3
     AND o.finished_at IS NULL AND o.place IS NULL AND o.state = 'pending' AND o.next_run_at <= now()
     AND (o.error IS NULL OR NOT trivet.waits_for_pool(o.tenant_id, o.backend_id, o.error))
     AND NOT EXISTS (
           SELECT FROM trivet.operation_slot mine
             JOIN trivet.operation_slot other
               ON other.resource_id = mine.resource_id AND other.slot = mine.slot
              AND other.operation_id <> mine.operation_id AND (other.tenant_id = $1) IS TRUE
            WHERE mine.tenant_id = $1 AND mine.operation_id = o.id AND NOT other.parked AND (other.held OR other.seq < mine.seq))
   ORDER BY o.priority DESC, o.seq
   LIMIT (SELECT n FROM room)
     FOR UPDATE OF o SKIP LOCKED
), due AS (
  SELECT id FROM trivet.operation
   WHERE tenant_id = $1
     AND id = ANY (ARRAY(SELECT operation_id FROM next_in_line UNION SELECT id FROM next_with_room))
     AND backend_id = $2 AND class = $3 AND state = 'pending' AND place IS NULL
     AND NOT EXISTS (SELECT FROM trivet.backend_circuit
                      WHERE tenant_id = $1 AND backend_id = $2 AND trivet.circuit_state(open_until) = 'open')
   ORDER BY id IN (SELECT operation_id FROM next_in_line) DESC, priority DESC, seq
   LIMIT (SELECT n FROM room)
     FOR UPDATE SKIP LOCKED
), ranked AS (
  SELECT id, row_number() OVER () AS rank FROM due
), places AS MATERIALIZED (
  SELECT place, row_number() OVER () AS rank
    FROM trivet.take_places($1, $2, $3, $5, (SELECT count(*) FROM due))
)
UPDATE trivet.operation o SET place = places.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
  FROM ranked JOIN places USING (rank)
 WHERE o.tenant_id = $1 AND o.id = ANY (ARRAY(SELECT id FROM due)) AND o.id = ranked.id
RETURNING o.id AS "operationId", o.class, o.host, o.dispatch_no AS "dispatchNo"
