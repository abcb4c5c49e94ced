-- One that waits for a person, locked, as a worker would have it.
-- $1 tenant $2 operation
SELECT tenant_id AS "tenantId", id, kind, class, backend_id AS "backendId", resource_kind AS "resourceKind",
       resource_id AS "resourceId", resource_name AS "resourceName",
       ARRAY(SELECT s.resource_id FROM trivet.operation_slot s WHERE s.tenant_id = $1 AND s.operation_id = $2) AS resources,
       request, progress, attempt, crashes, losses, 0 AS place,
       fence::text AS fence, '0' AS "hostFence", cancel_requested_at IS NOT NULL AS cancelled, traceparent,
       created_at AS "createdAt", error
  FROM trivet.operation
 WHERE tenant_id = $1 AND id = $2 AND state = 'needs_attention'
   FOR UPDATE
