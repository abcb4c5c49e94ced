-- The guarantee: everything that should run and is not about to is dispatched again, whatever became of the doorbell.
-- Round-robin over tenants and backends (their n-th operations come before anybody's n+1-th), each as far as it has free
-- places, none whose circuit is open, whose pool did not answer it and is down still, or who has somebody before him in line. Who was dispatched long ago has his place
-- still and is rung again, who has waited longest first; whose turn has not come gives the place back. Each class has a share of
-- the round of its own, and those without a place one apart from those that are rung again: 30 tenants whose index operations
-- nobody answered would else fill round after round. Nobody rings for a class that is paused: its
-- operations keep the places that they have, which are places of that class alone, and take no share of this round.
-- What this worker does not know it leaves to others, and a place that nobody has used goes to those that somebody knows.
-- $1 cap $2 redispatch after ms $3 limit of each share $4 kinds that the worker knows
WITH inflight AS (
  SELECT tenant_id, backend_id, class, count(*) AS n
    FROM trivet.operation
   WHERE place IS NOT NULL
   GROUP BY 1, 2, 3
), candidate AS MATERIALIZED (
  SELECT o.tenant_id, o.backend_id, o.class, o.id, o.state, o.priority, o.seq, o.place, o.dispatch_no, o.dispatched_at,
         o.kind = ANY ($4)
     AND NOT EXISTS (SELECT FROM trivet.backend_circuit c
                      WHERE c.tenant_id = o.tenant_id AND c.backend_id = o.backend_id AND trivet.circuit_state(c.open_until) = 'open')
     AND (o.error IS NULL OR NOT trivet.waits_for_pool(o.tenant_id, o.backend_id, o.error))
     AND NOT EXISTS (
           SELECT FROM trivet.operation_slot mine
             JOIN trivet.operation_slot other
               ON other.resource_id = mine.resource_id AND other.slot = mine.slot
              AND other.operation_id <> mine.operation_id AND (other.tenant_id = mine.tenant_id) IS TRUE
            WHERE mine.tenant_id = o.tenant_id AND mine.operation_id = o.id
              AND (other.held OR other.busy_until > now()
                   OR NOT mine.held AND mine.own AND other.own
                  AND (other.priority > mine.priority OR other.priority = mine.priority AND other.seq < mine.seq)))
         AS turn_has_come
    FROM trivet.operation o
   WHERE o.finished_at IS NULL AND o.class <> ALL (ARRAY(SELECT class FROM trivet.queue WHERE paused))
     AND (o.state = 'pending' AND o.next_run_at <= now()
          AND (o.place IS NULL OR o.dispatched_at <= now() - $2 * interval '1 ms')
       OR o.state = 'running' AND o.lease_until <= now() AND o.dispatched_at <= now() - $2 * interval '1 ms')
), waiting AS (
  SELECT c.*, row_number() OVER line AS rank,
         CASE WHEN c.place IS NULL THEN row_number() OVER line + coalesce(i.n, 0) ELSE 0 END AS turn
    FROM candidate c
    LEFT JOIN inflight i ON i.tenant_id = c.tenant_id AND i.backend_id = c.backend_id AND i.class = c.class
   WHERE c.turn_has_come
  WINDOW line AS (PARTITION BY c.tenant_id, c.backend_id, c.class, c.place IS NULL ORDER BY c.priority DESC, c.seq)
), chosen AS (
  SELECT * FROM (
    SELECT waiting.*,
           row_number() OVER (PARTITION BY class, place IS NULL
                                  ORDER BY turn, CASE WHEN place IS NOT NULL THEN dispatched_at END, priority DESC, seq) AS nth
      FROM waiting
     WHERE turn <= $1::int) AS share
   WHERE nth <= $3
), places AS MATERIALIZED (
  SELECT line.tenant_id, line.backend_id, line.class, free.place,
         row_number() OVER (PARTITION BY line.tenant_id, line.backend_id, line.class) AS rank
    FROM (SELECT tenant_id, backend_id, class, count(*) AS wanted
            FROM chosen WHERE place IS NULL GROUP BY 1, 2, 3) AS line,
         LATERAL trivet.take_places(line.tenant_id, line.backend_id, line.class, $1::int, line.wanted) AS free
), due AS (
  SELECT o.tenant_id, o.id, coalesce(o.place, p.place) AS place
    FROM chosen c
    JOIN trivet.operation o ON o.tenant_id = c.tenant_id AND o.id = c.id
    LEFT JOIN places p ON c.place IS NULL AND p.tenant_id = c.tenant_id AND p.backend_id = c.backend_id
                      AND p.class = c.class AND p.rank = c.rank
   -- Unless another reconciler was faster: a locked row is read anew.
   WHERE (o.state = 'pending' AND o.next_run_at <= now() OR o.state = 'running') AND o.dispatch_no = c.dispatch_no
     AND (o.place IS NOT NULL OR p.place IS NOT NULL)
   ORDER BY o.seq
     FOR UPDATE OF o SKIP LOCKED
), too_early AS (
  SELECT o.tenant_id, o.id
    FROM candidate c
    JOIN trivet.operation o ON o.tenant_id = c.tenant_id AND o.id = c.id
   WHERE NOT c.turn_has_come AND c.place IS NOT NULL AND o.state = 'pending' AND o.dispatch_no = c.dispatch_no
     FOR UPDATE OF o SKIP LOCKED
), given_back AS (
  UPDATE trivet.operation o SET place = NULL
    FROM too_early
   WHERE o.tenant_id = too_early.tenant_id AND o.id = too_early.id
)
UPDATE trivet.operation o SET place = due.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
  FROM due
 WHERE o.tenant_id = due.tenant_id AND o.id = due.id
RETURNING o.id AS "operationId", o.class, o.dispatch_no AS "dispatchNo", o.dispatch_no > 1 AS again
