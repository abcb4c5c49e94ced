-- Recovery points, each of another operation. Raises when the lease of one of them is lost, which ends the transaction
-- that this stands in. Events of the first ten attempts only: after them an outage has its story.
-- $1 tenant $2 operations $3 their fences $4 steps $5 progress; answers with those that are asked to stop
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::text[], $5::jsonb[]) AS given (id, fence, step, progress)
), point AS (
  UPDATE trivet.operation o SET step = given.step, progress = given.progress
    FROM given
   WHERE o.tenant_id = $1 AND o.id = ANY ($2::uuid[]) AND o.id = given.id AND o.fence = given.fence
     AND o.state = 'running' AND o.lease_until > now()
  RETURNING o.id, o.step, o.attempt, o.cancel_requested_at
), event AS (
  INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail)
  SELECT $1, id, 'step', jsonb_build_object('step', step) FROM point WHERE attempt <= 10
)
SELECT trivet.fenced(CASE WHEN count(*) = cardinality($2::uuid[]) THEN
         coalesce(array_agg(id::text) FILTER (WHERE cancel_requested_at IS NOT NULL), '{}') END) AS cancelled
  FROM point
