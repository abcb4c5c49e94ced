-- One statement accepts: operations, slots, events, entries of the audit log. Each is dispatched at once when nobody is in line before it, its
-- tenant has a free place at this backend and class, and the backend's circuit is closed; otherwise whoever ends next, or
-- the reconciler, dispatches it. The operation row is its own outbox: dispatched_at is what an outbox row would say.
-- What the host of its pool has is held while that is silent (trivet.route_operation). A negation goes no sooner than what the cancel.sql before it in this transaction says.
-- $1 tenant $2 operations [{id, kind, class, backend, resourceKind, resource, resourceName, request, priority, negates,
-- waited, traceparent, actor, slots: [{resource, slot, own, held}], audit: columns}] $3 cap
WITH claimed AS (
  -- Whose operations are accepted. What inserts new resources stands here instead, where there is such (see accept.ts).
  SELECT resource AS id FROM json_to_recordset($2::json) AS given (resource uuid)
), new AS MATERIALIZED (
  SELECT n.*, row_number() OVER () AS nth,
         CASE WHEN negates THEN nullif(current_setting('trivet.busy_until', true), '')::timestamptz END AS "notBefore"
    FROM json_to_recordset($2::json) AS n (
           id uuid, kind text, class text, backend uuid, "resourceKind" text, resource uuid, "resourceName" text,
           request jsonb, priority smallint, negates boolean, waited boolean, traceparent text, actor text, slots json,
           audit jsonb)
   WHERE resource = ANY (ARRAY(SELECT id FROM claimed))
), wanted AS MATERIALIZED (
  SELECT new.id, new.nth, s.resource, s.slot, s.own, coalesce(s.held, false) AS held
    FROM new, json_to_recordset(new.slots) AS s (resource uuid, slot text, own boolean, held boolean)
), taken AS MATERIALIZED (
  SELECT resource_id AS resource, slot
    FROM trivet.operation_slot
   WHERE resource_id = ANY (ARRAY(SELECT resource FROM wanted)) AND (tenant_id = $1) IS TRUE AND NOT parked
), circuit AS MATERIALIZED (
  SELECT backend_id AS backend, reason FROM trivet.backend_circuit
   WHERE tenant_id = $1 AND trivet.circuit_state(open_until) = 'open'
), behind AS MATERIALIZED (
  SELECT id FROM wanted JOIN taken USING (resource, slot)
  UNION ALL
  SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY resource, slot ORDER BY nth) AS place FROM wanted) AS line
   WHERE place > 1
), ready AS MATERIALIZED (
  SELECT id, backend, class, row_number() OVER (PARTITION BY backend, class ORDER BY nth) AS rank
    FROM new
   WHERE backend <> ALL (ARRAY(SELECT backend FROM circuit))
     AND ("notBefore" IS NULL OR "notBefore" <= now())
     AND id <> ALL (ARRAY(SELECT id FROM behind))
), places AS MATERIALIZED (
  SELECT line.backend, line.class, free.place,
         row_number() OVER (PARTITION BY line.backend, line.class) AS rank
    FROM (SELECT backend, class, count(*) AS wanted FROM ready GROUP BY 1, 2) AS line,
         LATERAL trivet.take_places($1, line.backend, line.class, $3, line.wanted) AS free
), accepted AS (
  INSERT INTO trivet.operation (tenant_id, id, kind, class, backend_id, resource_kind, resource_id, resource_name,
                                request, priority, waited, traceparent, actor, next_run_at, place, dispatch_no, dispatched_at)
  SELECT $1, new.id, new.kind, new.class, new.backend, new."resourceKind", new.resource, new."resourceName",
         new.request, new.priority, new.waited, new.traceparent, new.actor, coalesce(new."notBefore", now()),
         places.place, (places.place IS NOT NULL)::int, CASE WHEN places.place IS NOT NULL THEN now() END
    FROM new
    LEFT JOIN ready ON ready.id = new.id
    LEFT JOIN places ON places.backend = ready.backend AND places.class = ready.class AND places.rank = ready.rank
   ORDER BY new.nth
  RETURNING id, seq, priority, dispatch_no, backend_id, host, pool, place
), slots AS (
  INSERT INTO trivet.operation_slot (tenant_id, operation_id, resource_id, slot, own, held, seq, priority)
  SELECT $1, id, wanted.resource, wanted.slot, wanted.own, wanted.held, accepted.seq, accepted.priority
    FROM wanted JOIN accepted USING (id)
), noted AS (
  INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, token_name, address, door, action, subject_kind,
                                  subject_id, subject_name, before, after, reason, operation_id)
  SELECT $1, tenant.name, by.actor_kind, by.actor, by.token_name, by.address, by.door, by.action, by.subject_kind,
         by.subject_id, by.subject_name, by.before, by.after, by.reason, new.id
    FROM new JOIN accepted USING (id), trivet.tenant AS tenant,
         jsonb_populate_record(NULL::trivet.audit_entry, new.audit) AS by
   WHERE tenant.id = $1 AND new.audit IS NOT NULL
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type) SELECT $1, id, 'accepted' FROM accepted
)
SELECT id, dispatch_no AS "dispatchNo", host,
       coalesce((SELECT reason FROM circuit WHERE circuit.backend = backend_id),
                CASE WHEN host IS NOT NULL AND place IS NULL THEN trivet.host_silence(host, pool) END) AS "circuitReason"
  FROM accepted
