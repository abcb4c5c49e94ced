-- Takes the lease and the slots of each of these operations, or nothing of it. Two claims that meet at a slot meet at its
-- unique index: the loser gets 23505 and leaves. Expiry is the database's clock; the fence grows with every claim, also by
-- the owner of the expired one. Order binds on the operation's own resource, on others only exclusion does; who holds its
-- slots already has had its turn, whatever negation came since. A lease without an owner was handed back: that is no crash.
-- Else it counts as one, and the event says who had it last and at which step, until that worker says that it lives (left.sql).
-- A ring that is older than the place of its operation finds nothing to run: without a place the cap would not hold.
-- The host fence grows over all claims: whoever has a resource later has the higher one, whatever his operation.
-- Of a class that a person has paused nothing begins, whatever a worker knows of that. A kind that this worker does not know,
-- as one of the release before, is left to one that does; so is what another host has.
-- $1 operations $2 worker $3 lease in ms $4 kinds that the worker knows $5 its host
WITH candidate AS MATERIALIZED (
  SELECT tenant_id, id, state = 'running' AND lease_owner IS NOT NULL AS crashed,
         CASE state WHEN 'running' THEN lease_owner END AS lost_by
    FROM trivet.operation
   WHERE id = ANY ($1)
     AND (state = 'pending' AND place IS NOT NULL AND next_run_at <= now() OR state = 'running' AND lease_until <= now())
     AND class <> ALL (ARRAY(SELECT class FROM trivet.queue WHERE paused)) AND kind = ANY ($4)
     AND (host IS NULL OR host = $5::text)
     FOR UPDATE SKIP LOCKED
), mine AS MATERIALIZED (
  SELECT s.operation_id, s.tenant_id, s.resource_id, s.slot, s.own, s.held, s.priority, s.seq
    FROM trivet.operation_slot s
   WHERE s.tenant_id = ANY (ARRAY(SELECT DISTINCT tenant_id FROM candidate))
     AND s.operation_id = ANY (ARRAY(SELECT id FROM candidate))
), beside AS MATERIALIZED (
  SELECT o.operation_id, o.tenant_id, o.resource_id, o.slot, o.own, o.held, o.priority, o.seq, o.busy_until
    FROM trivet.operation_slot o
   WHERE o.resource_id = ANY (ARRAY(SELECT resource_id FROM mine))
), blocked AS MATERIALIZED (
  SELECT mine.operation_id
    FROM mine JOIN beside AS other
      ON other.resource_id = mine.resource_id AND other.slot = mine.slot AND other.tenant_id = mine.tenant_id
     AND other.operation_id <> mine.operation_id
   WHERE other.held OR other.busy_until > now()
      OR NOT mine.held AND mine.own AND other.own
     AND (other.priority > mine.priority OR other.priority = mine.priority AND other.seq < mine.seq)
), in_line AS MATERIALIZED (
  -- Of those that are claimed together here, and meet at a slot, the first may go.
  SELECT operation_id,
         row_number() OVER (PARTITION BY tenant_id, resource_id, slot ORDER BY priority DESC, seq) AS nth
    FROM mine
   WHERE operation_id <> ALL (ARRAY(SELECT operation_id FROM blocked))
), turn AS MATERIALIZED (
  SELECT c.*
    FROM candidate c
   WHERE c.id <> ALL (ARRAY(SELECT operation_id FROM blocked UNION ALL SELECT operation_id FROM in_line WHERE nth > 1))
), taken AS (
  UPDATE trivet.operation_slot s SET held = true
   WHERE s.tenant_id = ANY (ARRAY(SELECT DISTINCT tenant_id FROM turn))
     AND s.operation_id = ANY (ARRAY(SELECT id FROM turn)) AND NOT s.held
), leased AS (
  UPDATE trivet.operation o
     SET state = 'running', fence = o.fence + 1, lease_owner = $2, lease_until = now() + $3 * interval '1 ms',
         attempt = o.attempt + 1, crashes = o.crashes + turn.crashed::int,
         started_at = coalesce(o.started_at, now())
    FROM turn
   WHERE o.id = ANY (ARRAY(SELECT id FROM turn)) AND o.tenant_id = turn.tenant_id AND o.id = turn.id
  RETURNING o.*, turn.crashed, turn.lost_by
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT tenant_id, id, 'attempt', jsonb_build_object('attempt', attempt, 'fence', fence, 'worker', lease_owner)
                                || CASE WHEN crashed THEN jsonb_build_object('lostBy', lost_by, 'lostAt', step) ELSE '{}' END
    FROM leased WHERE attempt <= 10 OR attempt % 100 = 0 OR crashed
)
SELECT tenant_id AS "tenantId", id, kind, class, backend_id AS "backendId", resource_kind AS "resourceKind",
       resource_id AS "resourceId", resource_name AS "resourceName",
       ARRAY(SELECT DISTINCT mine.resource_id FROM mine WHERE mine.operation_id = leased.id) AS resources, request, progress, attempt, crashes, losses, place,
       fence::text AS fence, nextval('trivet.host_fence')::text AS "hostFence",
       cancel_requested_at IS NOT NULL AS cancelled, traceparent, created_at AS "createdAt"
  FROM leased
