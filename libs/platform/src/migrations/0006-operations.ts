import { rowSecurity } from '#platform/migrations/row-security';

/** Lists, actions and figures of operations, and what the overview shows. Figures: docs/adr/0016. */
export const OPERATIONS = `
-- Who asked it to stop; NULL: a negation did, which removes itself what is there.
ALTER TABLE trivet.operation ADD COLUMN cancel_by text;

-- Lists go by the id, which grows with time. Neither column of these changes while an operation lives, and those of the
-- predicates change only where the row moves anyway: at the end, and when an attempt has failed.
DROP INDEX trivet.operation_unfinished;
CREATE INDEX operation_unfinished ON trivet.operation (id) WHERE finished_at IS NULL;
CREATE INDEX operation_troubled ON trivet.operation (id) WHERE finished_at IS NULL AND error IS NOT NULL;
CREATE INDEX operation_failed ON trivet.operation (id) WHERE coalesce(error IS NOT NULL, false);
CREATE INDEX operation_cancelled ON trivet.operation (id) WHERE coalesce(cancel_requested_at IS NOT NULL, false);
CREATE INDEX operation_failed_of_tenant ON trivet.operation (tenant_id, id) WHERE error IS NOT NULL;
CREATE INDEX operation_cancelled_of_tenant ON trivet.operation (tenant_id, id) WHERE cancel_requested_at IS NOT NULL;
CREATE INDEX operation_of_kind ON trivet.operation (tenant_id, kind, id);
CREATE INDEX operation_of_name ON trivet.operation USING hash (resource_name);

CREATE INDEX volume_with_condition ON trivet.volume (tenant_id) WHERE condition IS NOT NULL;
CREATE INDEX snapshot_with_condition ON trivet.snapshot (tenant_id) WHERE condition IS NOT NULL;
CREATE INDEX bucket_with_condition ON trivet.bucket (tenant_id) WHERE condition IS NOT NULL;

-- Of each hour one, for the trend.
CREATE TABLE trivet.pool_sample (
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  pool text NOT NULL,
  at timestamptz NOT NULL,
  used_bytes bigint NOT NULL,
  total_bytes bigint NOT NULL,
  PRIMARY KEY (tenant_id, backend_id, pool, at),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
);
${rowSecurity(['pool_sample'])}

-- Names for ids that somebody may see: rows of operations have no others.
CREATE FUNCTION trivet.backend_names(p_ids uuid[]) RETURNS TABLE (id uuid, tenant text, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.id, t.name, b.name FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id WHERE b.id = ANY (p_ids);
$$;
-- Those of one tenant, or of all, by their name.
CREATE FUNCTION trivet.backends_named(p_tenant uuid, p_name text) RETURNS TABLE (id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM trivet.backend WHERE name = p_name AND (p_tenant IS NULL OR tenant_id = p_tenant);
$$;
CREATE FUNCTION trivet.tenant_names() RETURNS TABLE (id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, name FROM trivet.tenant;
$$;

-- Which of these logins and tokens may still read; for streams that outlive many requests.
CREATE FUNCTION trivet.living_admin_tokens(p_ids uuid[]) RETURNS TABLE (id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.id
    FROM trivet.admin_token a
    JOIN trivet.tenant t ON t.id = a.tenant_id AND t.state = 'active'
    JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id AND u.state = 'active'
   WHERE a.id = ANY (p_ids) AND (a.expires_at IS NULL OR a.expires_at > now());
$$;

-- For the overview: of one tenant, or of all.
CREATE FUNCTION trivet.overview_backends(p_tenant uuid)
RETURNS TABLE (tenant text, name text, kind text, state text, open boolean, reason text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, b.kind, b.state, coalesce(c.open_until > now(), false), c.reason
    FROM trivet.backend b
    JOIN trivet.tenant t ON t.id = b.tenant_id
    LEFT JOIN trivet.backend_circuit c ON c.tenant_id = b.tenant_id AND c.backend_id = b.id
   WHERE p_tenant IS NULL OR b.tenant_id = p_tenant
   ORDER BY t.name, b.name;
$$;
CREATE FUNCTION trivet.overview_pools(p_tenant uuid)
RETURNS TABLE (tenant text, backend text, pool text, state text, reason text, total bigint, used bigint, trend json)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, p.name, p.state, p.reason, p.total_bytes, p.used_bytes,
         (SELECT coalesce(json_agg(json_build_object('at', s.at, 'used', s.used_bytes::text) ORDER BY s.at), '[]')
            FROM trivet.pool_sample s
           WHERE s.tenant_id = p.tenant_id AND s.backend_id = p.backend_id AND s.pool = p.name
             AND s.at > now() - interval '7 days')
    FROM trivet.pool p
    JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    JOIN trivet.tenant t ON t.id = p.tenant_id
   WHERE p_tenant IS NULL OR p.tenant_id = p_tenant
   ORDER BY t.name, b.name, p.position;
$$;
CREATE FUNCTION trivet.overview_findings(p_tenant uuid)
RETURNS TABLE (tenant text, backend text, kind text, found bigint, example text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, f.kind, count(*), min(f.message)
    FROM trivet.finding f
    JOIN trivet.backend b ON b.tenant_id = f.tenant_id AND b.id = f.backend_id
    JOIN trivet.tenant t ON t.id = f.tenant_id
   WHERE p_tenant IS NULL OR f.tenant_id = p_tenant
   GROUP BY t.name, b.name, f.kind ORDER BY t.name, b.name, f.kind;
$$;
CREATE FUNCTION trivet.overview_conditions(p_tenant uuid)
RETURNS TABLE (tenant text, kind text, found bigint, name text, message text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, r.kind, count(*), min(r.name), min(r.message)
    FROM (SELECT tenant_id, 'volume' AS kind, name, condition ->> 'message' AS message
            FROM trivet.volume WHERE condition IS NOT NULL AND state <> 'gone'
          UNION ALL
          SELECT tenant_id, 'snapshot', name, condition ->> 'message'
            FROM trivet.snapshot WHERE condition IS NOT NULL AND state <> 'gone'
          UNION ALL
          SELECT tenant_id, 'bucket', name, condition ->> 'message'
            FROM trivet.bucket WHERE condition IS NOT NULL AND state <> 'gone') AS r
    JOIN trivet.tenant t ON t.id = r.tenant_id
   WHERE p_tenant IS NULL OR r.tenant_id = p_tenant
   GROUP BY t.name, r.kind ORDER BY t.name, r.kind;
$$;

-- Up to the given number, oldest first, for an export by the appliance's administrators.
CREATE FUNCTION trivet.audit_from(p_after bigint, p_limit integer, p_tenant text, p_actor text, p_action text,
                                  p_subject text, p_since timestamptz, p_until timestamptz)
RETURNS SETOF trivet.audit_entry
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM trivet.audit_entry
   WHERE seq > p_after
     AND (p_tenant IS NULL OR tenant_name = p_tenant) AND (p_actor IS NULL OR actor = p_actor)
     AND (p_action IS NULL OR starts_with(action, p_action))
     AND (p_subject IS NULL OR subject_name = p_subject OR subject_id = p_subject)
     AND (p_since IS NULL OR at >= p_since) AND (p_until IS NULL OR at < p_until)
   ORDER BY seq LIMIT p_limit;
$$;
`;

const MADE =
  'backend_names, backends_named, tenant_names, living_admin_tokens, overview_backends, overview_pools, overview_findings, overview_conditions, audit_from'
    .split(', ')
    .map(name => `trivet.${name}`)
    .join(', ');

export const OPERATION_GRANTS = `
REVOKE EXECUTE ON FUNCTION ${MADE} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${MADE} TO trivet_app;
`;
