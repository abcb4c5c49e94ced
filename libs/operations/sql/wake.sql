-- After operations left their slots and places: the places go to the next in the lines that they stood in, or else to the
-- next of their tenant, backend and class that wait for room. Runs in the same transaction. A place that is passed on
-- needs no count, so ends at the same time need not know of each other. Locked ones are skipped: these ends pass on to
-- different ones. Who is next in one more of the lines gets a place of his own, if there is one. Who is next and has a
-- place already was rung before its turn had come: it is rung again.
-- $1 tenant $2 backend $3 class $4 resources $5 the places that are free now $6 cap
WITH line AS MATERIALIZED (
  SELECT operation_id, resource_id, slot, priority, seq
    FROM trivet.operation_slot
   WHERE resource_id = ANY ($4) AND (tenant_id = $1) IS TRUE
), ready AS MATERIALIZED (
  -- By an array each is looked up by its id. A join would be planned as a scan of all that the tenant ever did.
  SELECT id FROM trivet.operation
   WHERE tenant_id = $1 AND id = ANY (ARRAY(SELECT operation_id FROM line)) AND state = 'pending' AND next_run_at <= now()
), next_in_line AS (
  SELECT DISTINCT ON (resource_id, slot) operation_id
    FROM line
   WHERE operation_id IN (SELECT id FROM ready)
   ORDER BY resource_id, slot, priority DESC, seq
), next_with_room AS (
  SELECT o.id, o.priority, o.seq
    FROM trivet.operation o
   WHERE o.tenant_id = $1 AND o.backend_id = $2 AND o.class = $3
     AND o.finished_at IS NULL AND o.place IS NULL AND o.state = 'pending' AND o.next_run_at <= now()
     AND NOT EXISTS (
           SELECT FROM trivet.operation_slot mine
             JOIN trivet.operation_slot other
               ON other.resource_id = mine.resource_id AND other.slot = mine.slot
              AND other.operation_id <> mine.operation_id AND (other.tenant_id = $1) IS TRUE
            WHERE mine.tenant_id = $1 AND mine.operation_id = o.id AND NOT other.parked AND (other.held OR other.seq < mine.seq))
     AND NOT EXISTS (SELECT FROM trivet.backend_circuit
                      WHERE tenant_id = $1 AND backend_id = $2 AND open_until > now())
   ORDER BY o.priority DESC, o.seq
   LIMIT cardinality($5::smallint[])
     FOR UPDATE OF o SKIP LOCKED
), in_line AS (
  SELECT o.id, o.place, o.backend_id, o.class, o.priority, o.seq
    FROM trivet.operation o
   WHERE o.tenant_id = $1 AND o.id = ANY (ARRAY(SELECT operation_id FROM next_in_line)) AND o.state = 'pending'
     AND NOT EXISTS (SELECT FROM trivet.backend_circuit c
                      WHERE c.tenant_id = $1 AND c.backend_id = o.backend_id AND c.open_until > now())
     FOR UPDATE OF o SKIP LOCKED
), heir AS (
  SELECT heirs.id, free.place
    FROM (SELECT id, row_number() OVER (ORDER BY in_line DESC, priority DESC, seq) AS rank
            FROM (SELECT id, priority, seq, true AS in_line
                    FROM in_line WHERE place IS NULL AND backend_id = $2 AND class = $3
                  UNION
                  SELECT id, priority, seq, id IN (SELECT id FROM in_line) FROM next_with_room) AS next
         ) AS heirs
    JOIN unnest($5::smallint[]) WITH ORDINALITY AS free (place, rank) USING (rank)
), others AS (
  SELECT id, backend_id, class, row_number() OVER (PARTITION BY backend_id, class) AS rank
    FROM in_line WHERE place IS NULL AND id <> ALL (ARRAY(SELECT id FROM heir))
), places AS MATERIALIZED (
  -- More than wanted: the places of the heirs look free.
  SELECT line.backend_id, line.class, free.place,
         row_number() OVER (PARTITION BY line.backend_id, line.class) AS rank
    FROM (SELECT backend_id, class, count(*) + cardinality($5::smallint[]) AS wanted FROM others GROUP BY 1, 2) AS line,
         LATERAL trivet.take_places($1, line.backend_id, line.class, $6, line.wanted) AS free
   WHERE NOT (line.backend_id = $2 AND line.class = $3 AND free.place = ANY ($5::smallint[]))
), due AS (
  SELECT id, place FROM in_line WHERE place IS NOT NULL
  UNION ALL
  SELECT id, place FROM heir
  UNION ALL
  SELECT id, place FROM others JOIN places USING (backend_id, class, rank)
)
UPDATE trivet.operation o SET place = due.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
  FROM due
 WHERE o.tenant_id = $1 AND o.id = ANY (ARRAY(SELECT id FROM due)) AND o.id = due.id
RETURNING o.id AS "operationId", o.class, o.dispatch_no AS "dispatchNo"
