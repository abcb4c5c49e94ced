/**
 * A suspended tenant is told so, once it has said rightly who it is: to everybody else nothing is said. Hence these give
 * the tenant's state instead of leaving the row out.
 */
const SESSION = `
DROP FUNCTION trivet.find_session;
CREATE FUNCTION trivet.find_session(p_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, tenant_name text, user_id uuid, user_name text, role text, backend_id uuid,
               backend_kind text, enveloped boolean, array_ip text, remaining_ms double precision, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.id, s.tenant_id, t.name, u.id, u.name, u.role, s.backend_id, b.kind, s.enveloped, s.array_ip,
         extract(epoch FROM s.expires_at - now())::double precision * 1000, t.state
    FROM trivet.session_token s
    JOIN trivet.tenant t ON t.id = s.tenant_id
    JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.user_id AND u.state = 'active'
    JOIN trivet.backend b ON b.tenant_id = s.tenant_id AND b.id = s.backend_id
   WHERE s.token_hash = p_hash AND s.expires_at > now();
$$;`;

const LOGIN = `
DROP FUNCTION trivet.find_login;
CREATE FUNCTION trivet.find_login(p_tenant text, p_user text)
RETURNS TABLE (tenant_id uuid, user_id uuid, password text, role text, active boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT u.tenant_id, u.id, u.password, u.role, u.state = 'active', t.state
    FROM trivet.tenant t JOIN trivet.tenant_user u ON u.tenant_id = t.id
   WHERE t.name = p_tenant AND u.name = p_user;
$$;`;

const SNAPSHOT_SESSION = `
DROP FUNCTION trivet.find_snapshot_session;
CREATE FUNCTION trivet.find_snapshot_session(p_hash bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, session_id uuid, driver text, expires_at timestamptz,
               remaining_ms double precision, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.tenant_id, t.name, s.id, s.driver, s.expires_at,
         extract(epoch FROM s.expires_at - now())::double precision * 1000, t.state
    FROM trivet.snapshot_session s
    JOIN trivet.tenant t ON t.id = s.tenant_id
    LEFT JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.created_by
   WHERE s.token_hash = p_hash AND s.state = 'ready' AND s.expires_at > now()
     AND (s.created_by IS NULL OR u.state = 'active');
$$;`;

/** Templates wait while their tenant is suspended; what was accepted before goes on to its end. */
const DUE = `
CREATE OR REPLACE FUNCTION trivet.protection_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id FROM trivet.tenant t
   WHERE t.state = 'active' AND (EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.next_run_at <= now())
      OR EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.prune_at <= now())
      OR EXISTS (SELECT FROM trivet.finding f WHERE f.tenant_id = t.id AND f.kind = 'protection_paused'));
$$;`;

const FUNCTIONS = 'trivet.find_session, trivet.find_login, trivet.find_snapshot_session';
const RIGHTS = `
REVOKE EXECUTE ON FUNCTION ${FUNCTIONS} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${FUNCTIONS} TO trivet_app;`;

export const SUSPENSION = [
  SESSION,
  LOGIN,
  SNAPSHOT_SESSION,
  DUE,
  RIGHTS,
  `
-- Of a draining one: whatever it has is removed. Else it goes only if it has nothing.
ALTER TABLE trivet.tenant ADD COLUMN drains boolean NOT NULL DEFAULT false;
-- For gateways, which ask it every second: whose doors are shut.
CREATE FUNCTION trivet.shut_tenants() RETURNS TABLE (tenant_id uuid, name text, state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, name, state FROM trivet.tenant WHERE state <> 'active';
$$;
-- For workers: which are to be removed.
CREATE FUNCTION trivet.draining_tenants() RETURNS TABLE (tenant_id uuid, name text, version integer, drains boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, name, version, drains FROM trivet.tenant WHERE state = 'draining' AND kind = 'tenant' ORDER BY name;
$$;
-- No row: it is gone, or another version by now.
CREATE FUNCTION trivet.end_tenant(p_id uuid, p_version integer, p_drains boolean) RETURNS TABLE (version integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.tenant SET state = 'draining', drains = p_drains, version = version + 1, updated_at = now()
   WHERE id = p_id AND version = p_version AND kind = 'tenant' RETURNING version;
$$;
REVOKE EXECUTE ON FUNCTION trivet.shut_tenants, trivet.draining_tenants, trivet.end_tenant FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.shut_tenants, trivet.draining_tenants, trivet.end_tenant TO trivet_app;`,
].join('\n');
