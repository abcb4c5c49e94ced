import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** Users of a tenant, their tokens, and the throttle of their logins. */
export class Users1795305600000 implements Migration {
  readonly locks: Migration['locks'] = {
    backend: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [USERS, THROTTLE, rowSecurity(TABLES), FUNCTIONS]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.find_tenant, trivet.find_login, trivet.find_session,
        trivet.login_blocked, trivet.login_failed, trivet.login_succeeded;
      DROP TABLE ${[...TABLES].reverse().map(table => `trivet.${table}`)}, trivet.login_throttle`);
  }
}

const USERS = `
-- Login: name in the tenant default, name@tenant everywhere; so logins are unique over the appliance (invariant T3).
CREATE TABLE trivet.tenant_user (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  id uuid NOT NULL,
  name text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
  -- argon2id as a PHC string, with the parameters it was made with.
  password text NOT NULL,
  role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'disabled')),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name)
);

-- A user has as many as there are logins. Of the token itself there is only the SHA-256: it is 256 random bits.
CREATE TABLE trivet.session_token (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid NOT NULL,
  token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
  backend_id uuid NOT NULL,
  -- How the login was written: in a data envelope or bare.
  enveloped boolean NOT NULL,
  array_ip text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
);
CREATE INDEX session_token_by_hash ON trivet.session_token (token_hash);
CREATE INDEX session_token_of_user ON trivet.session_token (tenant_id, user_id);
CREATE INDEX session_token_expiry ON trivet.session_token (tenant_id, expires_at);
`;

const THROTTLE = `
-- Rule: login throttle. Failed logins, of an account (known or not) and of an address. One is forgiven every minute. Reached by the three
-- functions below and by nothing else.
CREATE TABLE trivet.login_throttle (
  subject text PRIMARY KEY,
  failures integer NOT NULL,
  blocked_until timestamptz NOT NULL,
  failed_at timestamptz NOT NULL
);
CREATE INDEX login_throttle_age ON trivet.login_throttle (failed_at);
`;

const TABLES = ['tenant_user', 'session_token'] as const;

const FUNCTIONS = `
CREATE FUNCTION trivet.find_tenant(p_name text) RETURNS TABLE (tenant_id uuid, active boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, state = 'active' FROM trivet.tenant WHERE name = p_name;
$$;

CREATE FUNCTION trivet.find_login(p_tenant text, p_user text)
RETURNS TABLE (tenant_id uuid, user_id uuid, password text, role text, active boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT u.tenant_id, u.id, u.password, u.role, t.state = 'active' AND u.state = 'active'
    FROM trivet.tenant t JOIN trivet.tenant_user u ON u.tenant_id = t.id
   WHERE t.name = p_tenant AND u.name = p_user;
$$;

-- Nothing for a token that opens nothing: expired, its user disabled, its tenant suspended.
CREATE FUNCTION trivet.find_session(p_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, tenant_name text, user_id uuid, user_name text, role text, backend_id uuid,
               backend_kind text, enveloped boolean, array_ip text, remaining_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.id, s.tenant_id, t.name, u.id, u.name, u.role, s.backend_id, b.kind, s.enveloped, s.array_ip,
         extract(epoch FROM s.expires_at - now())::double precision * 1000
    FROM trivet.session_token s
    JOIN trivet.tenant t ON t.id = s.tenant_id AND t.state = 'active'
    JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.user_id AND u.state = 'active'
    JOIN trivet.backend b ON b.tenant_id = s.tenant_id AND b.id = s.backend_id
   WHERE s.token_hash = p_hash AND s.expires_at > now();
$$;

-- Seconds to wait, 0: none of these is blocked.
CREATE FUNCTION trivet.login_blocked(p_subjects text[]) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT greatest(0, ceil(extract(epoch FROM coalesce(max(blocked_until), now()) - now())))::integer
    FROM trivet.login_throttle WHERE subject = ANY (p_subjects);
$$;

-- Beyond p_free failures the wait doubles from 1 s up to p_cap seconds. Gives the failures that count now. What is
-- forgiven long since goes along, in a bounded portion: unknown accounts must not fill the table.
CREATE FUNCTION trivet.login_failed(p_subject text, p_free integer, p_cap integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  counted integer;
BEGIN
  INSERT INTO trivet.login_throttle AS l (subject, failures, blocked_until, failed_at)
  VALUES (p_subject, 1, now(), now())
  ON CONFLICT (subject) DO UPDATE
    SET failures = least(1000, 1 + greatest(0, l.failures - floor(extract(epoch FROM now() - l.failed_at) / 60)::integer)),
        failed_at = now()
  RETURNING l.failures INTO counted;
  IF counted > p_free THEN
    UPDATE trivet.login_throttle
       SET blocked_until = now() + least(p_cap, 2 ^ least(20, counted - p_free - 1)) * interval '1 second'
     WHERE subject = p_subject;
  END IF;
  DELETE FROM trivet.login_throttle
   WHERE subject IN (SELECT subject FROM trivet.login_throttle
                      WHERE failed_at < now() - interval '1 day' ORDER BY failed_at LIMIT 10 FOR UPDATE SKIP LOCKED);
  RETURN counted;
END $$;

CREATE FUNCTION trivet.login_succeeded(p_subject text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM trivet.login_throttle WHERE subject = p_subject;
$$;

REVOKE EXECUTE ON FUNCTION trivet.find_tenant, trivet.find_login, trivet.find_session, trivet.login_blocked,
  trivet.login_failed, trivet.login_succeeded FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_tenant, trivet.find_login, trivet.find_session, trivet.login_blocked,
  trivet.login_failed, trivet.login_succeeded TO trivet_app;
`;
