-- All leases of one worker in one UPDATE. Losing it in a crash of the database only makes a lease end early, so it
-- need not wait for the disk. Only a live lease is renewed, and only one that the worker knows of: a claim whose answer was
-- lost, or an attempt that ended without a write, must run out. It waits for nobody: a row that a commit of its own operation
-- has locked, which may wait for a worker that stands still in the middle of a transaction, would hold up the leases of all
-- others. Such a one is told as not renewed; nobody can claim it meanwhile.
-- $1 worker $2 lease in ms $3 operations $4 their fences
WITH relaxed AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'off', true)
), known AS MATERIALIZED (
  SELECT * FROM unnest($3::uuid[], $4::bigint[]) AS known (operation_id, known_fence)
), free AS MATERIALIZED (
  SELECT o.id
    FROM trivet.operation o, known, relaxed
   WHERE o.lease_owner = $1 AND o.id = ANY ($3) AND o.id = operation_id AND o.fence = known_fence AND o.state = 'running'
     AND o.lease_until > now()
     FOR NO KEY UPDATE OF o SKIP LOCKED
), renewed AS (
  UPDATE trivet.operation o SET lease_until = now() + $2 * interval '1 ms'
    FROM free
   WHERE o.id = ANY ($3) AND o.id = free.id
  RETURNING o.id
)
SELECT o.id, o.fence::text AS fence, o.cancel_requested_at IS NOT NULL AS cancelled, renewed.id IS NOT NULL AS renewed
  FROM trivet.operation o
  JOIN known ON o.id = operation_id AND o.fence = known_fence
  LEFT JOIN renewed ON renewed.id = o.id
 WHERE o.lease_owner = $1 AND o.id = ANY ($3) AND o.state = 'running' AND o.lease_until > now()
