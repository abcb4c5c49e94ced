-- Whatever a worker holds goes back: at once, but an operation with an unanswered call when that can take no effect any more.
-- Until then nobody else touches its resources (invariant E5). The fence stays, so that the worker can write nothing from then on.
-- Who is running has a place: so it reads those that have one, and nothing of what waits or has ended. It waits for nobody: a row
-- that is locked, as by a commit of its own operation, would keep all others from going back. Answers with those that are left.
-- $1 worker $2 operations with an unanswered call $3 for how many ms that may still take effect
WITH placed AS MATERIALIZED (
  SELECT tenant_id, id
    FROM trivet.operation
   WHERE place IS NOT NULL AND lease_owner = $1 AND state = 'running' AND lease_until > now()
   ORDER BY tenant_id, backend_id, class, place
), free AS MATERIALIZED (
  SELECT o.tenant_id, o.id
    FROM placed JOIN trivet.operation o ON o.tenant_id = placed.tenant_id AND o.id = placed.id
   WHERE o.lease_owner = $1 AND o.state = 'running' AND o.lease_until > now()
     FOR NO KEY UPDATE OF o SKIP LOCKED
), handed AS (
  UPDATE trivet.operation o
     SET lease_owner = NULL, dispatched_at = now() - interval '1 hour',
         lease_until = least(lease_until, now() + interval '1 ms' * coalesce(
           (SELECT ms FROM unnest($2::uuid[], $3::float8[]) AS unanswered (id, ms) WHERE unanswered.id = o.id), 0))
    FROM free
   WHERE o.tenant_id = free.tenant_id AND o.id = free.id
)
SELECT id FROM placed WHERE id NOT IN (SELECT id FROM free)
