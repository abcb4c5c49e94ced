-- All leases of one worker in one UPDATE. Losing it in a crash of the database only makes a lease end early, so it
-- need not wait for the disk. Only a live lease is renewed, and only one that the worker knows of: a claim whose answer was
-- lost, or an attempt that ended without a write, must run out.
-- $1 worker $2 lease in ms $3 operations $4 their fences
WITH relaxed AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'off', true)
)
UPDATE trivet.operation SET lease_until = now() + $2 * interval '1 ms'
  FROM relaxed, unnest($3::uuid[], $4::bigint[]) AS held (operation_id, held_fence)
 WHERE lease_owner = $1 AND id = ANY ($3) AND id = operation_id AND fence = held_fence AND state = 'running' AND lease_until > now()
RETURNING id, fence::text AS fence, cancel_requested_at IS NOT NULL AS cancelled
