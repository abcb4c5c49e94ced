-- Recovery points, each of another operation. Raises when the lease of one of them is lost, which ends the transaction
-- that this stands in. Events of the first ten attempts only: after them an outage has its story.
-- $1 their tenants $2 operations $3 their fences $4 worker (a fence may repeat: ADR 30) $5 steps $6 progress; answers with those that
-- are asked to stop
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $5::text[], $6::jsonb[]) AS given (tenant_id, id, fence, step, progress)
), point AS (
  UPDATE trivet.operation o SET step = given.step, progress = given.progress
    FROM given
   WHERE o.id = ANY ($2::uuid[]) AND o.id = given.id AND (o.tenant_id = given.tenant_id) IS TRUE AND o.fence = given.fence
     AND o.lease_owner = $4 AND o.state = 'running' AND o.lease_until > now()
  RETURNING o.tenant_id, o.id, o.step, o.attempt, o.cancel_requested_at
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT tenant_id, id, 'step', jsonb_build_object('step', step) FROM point WHERE attempt <= 10
)
SELECT trivet.fenced(CASE WHEN count(*) = cardinality($2::uuid[]) THEN
         coalesce(array_agg(id::text) FILTER (WHERE cancel_requested_at IS NOT NULL), '{}') END) AS cancelled
  FROM point
