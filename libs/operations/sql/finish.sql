-- Ends operations: states, slots, events and the waiters' bells in one transaction. The fences stay for ever: a row that
-- were deleted would begin again at zero. A success that a negation has overtaken is a cancellation: its waiters must not
-- be told of something that is about to be undone. A person who asked it to stop came too late. Raises when the lease of one of them is lost.
-- Of a success without a result there is nothing to read: those are told by one notification, and after it by one each, for gateways
-- of the release before, which look at them.
-- $1 their tenants $2 operations $3 their fences $4 worker (a fence may repeat: ADR 30) $5 states $6 results $7 errors; answers with {operation: state}
WITH given AS MATERIALIZED (
  SELECT *
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $5::text[], $6::jsonb[], $7::jsonb[])
      AS given (tenant_id, id, fence, state, result, error)
), finished AS (
  UPDATE trivet.operation o
     SET state = CASE WHEN o.cancel_requested_at IS NOT NULL AND o.cancel_by IS NULL AND given.state = 'succeeded' THEN 'cancelled'
                      ELSE given.state END,
         result = given.result, error = given.error, finished_at = now(),
         lease_owner = NULL, lease_until = NULL, place = NULL
    FROM given
   WHERE o.id = ANY ($2::uuid[]) AND o.id = given.id AND (o.tenant_id = given.tenant_id) IS TRUE AND o.fence = given.fence
     AND o.lease_owner = $4 AND o.state = 'running' AND o.lease_until > now()
  RETURNING o.tenant_id, o.id, o.waited, o.state, o.result, o.error
), released AS (
  DELETE FROM trivet.operation_slot WHERE tenant_id = ANY ($1::uuid[]) AND operation_id = ANY ($2::uuid[])
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT tenant_id, id, state, coalesce(jsonb_build_object('error', error), '{}') FROM finished
)
SELECT states,
       CASE WHEN plain IS NOT NULL THEN pg_notify('trivet_succeeded', plain) END,
       (SELECT count(pg_notify('trivet_done', id)) FROM unnest(waited) AS id)
  FROM (SELECT trivet.fenced(CASE WHEN count(*) = cardinality($2::uuid[]) THEN jsonb_object_agg(id, state) END) AS states,
               string_agg(id::text, ',') FILTER (WHERE waited AND state = 'succeeded' AND result IS NULL) AS plain,
               array_agg(id::text) FILTER (WHERE waited) AS waited
          FROM finished) AS told
