-- The guarantee: everything that should run and is not about to is dispatched again, whatever became of the doorbell.
-- Round-robin over tenants and backends (their n-th operations come before anybody's n+1-th), each as far as it has free
-- places, none whose circuit is open, whose pool did not answer it and is down still, or who has somebody before him in line. Who was dispatched long ago has his place
-- still and is rung again, who has waited longest first; whose turn has not come gives the place back. Each class has a share of
-- the round of its own, and those without a place one apart from those that are rung again: 30 tenants whose index operations
-- nobody answered would else fill round after round. Nobody rings for a class that is paused: its
-- operations keep the places that they have, which are places of that class alone, and take no share of this round.
-- What this worker does not know, or another host has, it leaves to others, and a place that nobody has used goes to those that somebody knows.
-- However many wait, it reads who has a place, and of each line in which one is free as many as that: lines are found one after
-- the other in the index of those that wait.
-- $1 cap $2 redispatch after ms $3 limit of each share $4 kinds that the worker knows $5 its host
WITH RECURSIVE line AS (
  (SELECT tenant_id, backend_id, class
     FROM trivet.operation
    WHERE place IS NULL AND finished_at IS NULL
    ORDER BY tenant_id, backend_id, class LIMIT 1)
  UNION ALL
  SELECT next.tenant_id, next.backend_id, next.class
    FROM line, LATERAL (
         SELECT o.tenant_id, o.backend_id, o.class
           FROM trivet.operation o
          WHERE o.place IS NULL AND o.finished_at IS NULL
            AND (o.tenant_id, o.backend_id, o.class) > (line.tenant_id, line.backend_id, line.class)
          ORDER BY o.tenant_id, o.backend_id, o.class LIMIT 1) AS next
), paused AS MATERIALIZED (
  SELECT class FROM trivet.queue WHERE paused
), silent AS MATERIALIZED (
  SELECT tenant_id, backend_id FROM trivet.backend_circuit WHERE trivet.circuit_state(open_until) = 'open'
), placed AS MATERIALIZED (
  SELECT tenant_id, backend_id, class, id, kind, state, priority, seq, place, dispatch_no, dispatched_at, next_run_at, lease_until,
         error, host
    FROM trivet.operation
   WHERE place IS NOT NULL
   ORDER BY tenant_id, backend_id, class, place
), inflight AS (
  SELECT tenant_id, backend_id, class, count(*) AS n FROM placed GROUP BY 1, 2, 3
), unheard AS MATERIALIZED (
  SELECT o.tenant_id, o.backend_id, o.class, o.id, o.state, o.priority, o.seq, o.place, o.dispatch_no, o.dispatched_at,
         o.kind = ANY ($4)
     AND NOT EXISTS (SELECT FROM silent c WHERE c.tenant_id = o.tenant_id AND c.backend_id = o.backend_id)
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
    FROM placed o
   WHERE o.class <> ALL (ARRAY(SELECT class FROM paused)) AND o.dispatched_at <= now() - $2 * interval '1 ms'
     AND (o.host IS NULL OR o.host = $5::text)
     AND (o.state = 'pending' AND o.next_run_at <= now() OR o.state = 'running' AND o.lease_until <= now())
), cap AS MATERIALIZED (
  SELECT class, trivet.cap_of(class, $1) AS n FROM line GROUP BY class
), roomy AS MATERIALIZED (
  SELECT line.tenant_id, line.backend_id, line.class, coalesce(i.n, 0) AS taken, cap.n AS cap
    FROM line
    JOIN cap ON cap.class = line.class
    LEFT JOIN inflight i ON i.tenant_id = line.tenant_id AND i.backend_id = line.backend_id AND i.class = line.class
   WHERE coalesce(i.n, 0) < cap.n AND line.class <> ALL (ARRAY(SELECT class FROM paused))
     AND NOT EXISTS (SELECT FROM silent c WHERE c.tenant_id = line.tenant_id AND c.backend_id = line.backend_id)
), unplaced AS (
  SELECT next.*, roomy.taken
    FROM roomy, LATERAL (
         SELECT o.tenant_id, o.backend_id, o.class, o.id, o.state, o.priority, o.seq, o.place, o.dispatch_no, o.dispatched_at
           FROM trivet.operation o
          WHERE o.tenant_id = roomy.tenant_id AND o.backend_id = roomy.backend_id AND o.class = roomy.class
            AND o.place IS NULL AND o.finished_at IS NULL AND (o.kind = ANY ($4)) IS TRUE
            AND (o.host IS NULL OR o.host = $5::text)
            AND (o.state = 'pending' AND o.next_run_at <= now()
              OR o.state = 'running' AND o.lease_until <= now() AND o.dispatched_at <= now() - $2 * interval '1 ms')
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
          ORDER BY o.priority DESC, o.seq LIMIT roomy.cap - roomy.taken) AS next
), waiting AS (
  SELECT tenant_id, backend_id, class, id, priority, seq, place, dispatch_no, dispatched_at, 0 AS rank, 0 AS turn
    FROM unheard WHERE turn_has_come
   UNION ALL
  SELECT tenant_id, backend_id, class, id, priority, seq, place, dispatch_no, dispatched_at, rank, rank + taken
    FROM (SELECT u.*, row_number() OVER (PARTITION BY tenant_id, backend_id, class ORDER BY priority DESC, seq) AS rank
            FROM unplaced u) AS ranked
), chosen AS MATERIALIZED (
  SELECT * FROM (
    SELECT waiting.*,
           row_number() OVER (PARTITION BY class, place IS NULL
                                  ORDER BY turn, CASE WHEN place IS NOT NULL THEN dispatched_at END, priority DESC, seq) AS nth
      FROM waiting) AS share
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
    JOIN trivet.operation o ON o.id = c.id AND (o.tenant_id = c.tenant_id) IS TRUE
    LEFT JOIN places p ON c.place IS NULL AND p.tenant_id = c.tenant_id AND p.backend_id = c.backend_id
                      AND p.class = c.class AND p.rank = c.rank
   -- Unless another reconciler was faster: a locked row is read anew.
   WHERE o.id = ANY (ARRAY(SELECT id FROM chosen))
     AND (o.state = 'pending' AND o.next_run_at <= now() OR o.state = 'running') AND o.dispatch_no = c.dispatch_no
     AND (o.place IS NOT NULL OR p.place IS NOT NULL)
   ORDER BY o.seq
     FOR UPDATE OF o SKIP LOCKED
), too_early AS (
  SELECT o.tenant_id, o.id
    FROM unheard c
    JOIN trivet.operation o ON o.id = c.id AND (o.tenant_id = c.tenant_id) IS TRUE
   WHERE o.id = ANY (ARRAY(SELECT id FROM unheard WHERE NOT turn_has_come))
     AND NOT c.turn_has_come AND o.state = 'pending' AND o.dispatch_no = c.dispatch_no
     FOR UPDATE OF o SKIP LOCKED
), given_back AS (
  UPDATE trivet.operation o SET place = NULL
    FROM too_early
   WHERE o.id = ANY (ARRAY(SELECT id FROM too_early)) AND o.id = too_early.id AND (o.tenant_id = too_early.tenant_id) IS TRUE
)
UPDATE trivet.operation o SET place = due.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
  FROM due
 WHERE o.id = ANY (ARRAY(SELECT id FROM due)) AND o.id = due.id AND (o.tenant_id = due.tenant_id) IS TRUE
RETURNING o.id AS "operationId", o.class, o.host, o.dispatch_no AS "dispatchNo", o.dispatch_no > 1 AS again
