import type { QueryRunner } from 'typeorm';
import { StorageError } from '#platform/errors';
import { LISTS } from '#platform/migrations/0006-lists';
import { OPERATION_GRANTS, OPERATIONS } from '#platform/migrations/0006-operations';
import { QUOTAS } from '#platform/migrations/0006-quotas';
import { SUSPENSION } from '#platform/migrations/0006-suspension';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** What the administrators of tenants and of the appliance work with. Names and rules: docs/adr/0016. */
export class Admin1795564800000 implements Migration {
  // The longest by far: all of them with 10 million rows would take 9 minutes.
  readonly locks: Migration['locks'] = {
    access: { mode: 'SHARE', work: ['index'], seconds: 50 },
    backend: { mode: 'ACCESS EXCLUSIVE', work: ['scan', 'index', 'rewrite'], seconds: 100 },
    bucket: { mode: 'ACCESS EXCLUSIVE', work: ['index'], seconds: 60 },
    endpoint: { mode: 'ACCESS EXCLUSIVE', work: ['scan'], seconds: 4 },
    host: { mode: 'SHARE', work: ['index'], seconds: 50 },
    operation: { mode: 'ACCESS EXCLUSIVE', work: ['index'], seconds: 190 },
    operation_event: { mode: 'ACCESS EXCLUSIVE', work: ['index'], seconds: 25 },
    snapshot: { mode: 'SHARE ROW EXCLUSIVE', work: ['index'], seconds: 4 },
    tenant: { mode: 'ACCESS EXCLUSIVE', work: ['scan', 'index'], seconds: 10 },
    tenant_user: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: ['index'], seconds: 110 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [
      TENANTS,
      REGISTRY,
      TOKENS,
      AUDIT,
      EVENTS,
      WORKERS,
      rowSecurity(TABLES),
      APPEND_ONLY,
      TENANT_FUNCTIONS,
      FUNCTIONS,
      REGISTRY_FUNCTIONS,
      GRANTS,
      LISTS,
      OPERATIONS,
      OPERATION_GRANTS,
      QUOTAS,
      SUSPENSION,
    ])
      await runner.query(statement);
  }

  down(): Promise<void> {
    const why = 'administrators, tenants and the audit log would go with it: restore the backup of the release before';
    return Promise.reject(new StorageError('failed_precondition', `0006-admin is not undone: ${why}`));
  }
}

/**
 * The appliance's own administrators are the users of a tenant of its own: they log in, are throttled and are audited
 * like all others, and their role there is their role over all tenants.
 */
const TENANTS = `
ALTER TABLE trivet.tenant
  ADD COLUMN kind text NOT NULL DEFAULT 'tenant' CHECK (kind IN ('tenant', 'appliance')),
  ADD COLUMN display_name text NOT NULL DEFAULT '',
  ADD COLUMN version integer NOT NULL DEFAULT 1,
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
  DROP CONSTRAINT tenant_state_check,
  -- draining: its doors are shut like those of a suspended one, and what it has is being removed.
  ADD CONSTRAINT tenant_state_check CHECK (state IN ('active', 'suspended', 'draining'));
CREATE UNIQUE INDEX tenant_of_appliance ON trivet.tenant (kind) WHERE kind = 'appliance';
INSERT INTO trivet.tenant (id, name, kind) VALUES (gen_random_uuid(), 'appliance', 'appliance');

-- No row: no limit. Bytes, or a number of things.
CREATE TABLE trivet.tenant_quota (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  key text NOT NULL CHECK (key IN ('volumes', 'volume_bytes', 'snapshots', 'buckets', 'bucket_bytes', 'operations', 'streams')),
  value bigint NOT NULL CHECK (value >= 0),
  PRIMARY KEY (tenant_id, key)
);
`;

const REGISTRY = `
ALTER TABLE trivet.backend
  ADD COLUMN description text NOT NULL DEFAULT '',
  -- cordoned: nothing new is made there. draining: the same, and what is there is on its way out.
  ADD COLUMN state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'cordoned', 'draining')),
  -- The backend of the appliance's own tenant that this one is a share of; config and credentials follow that one.
  ADD COLUMN shared_from uuid,
  -- That one's state, which counts here as well.
  ADD COLUMN shared_state text NOT NULL DEFAULT 'active' CHECK (shared_state IN ('active', 'cordoned', 'draining')),
  ADD COLUMN effective_state text NOT NULL GENERATED ALWAYS AS (
    CASE WHEN 'draining' IN (state, shared_state) THEN 'draining'
         WHEN 'cordoned' IN (state, shared_state) THEN 'cordoned' ELSE 'active' END) STORED,
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX backend_share ON trivet.backend (shared_from) WHERE shared_from IS NOT NULL;
ALTER TABLE trivet.endpoint
  DROP CONSTRAINT endpoint_protocol_check,
  ADD CONSTRAINT endpoint_protocol_check CHECK (protocol IN ('cosi', 'csi')),
  -- A CSI endpoint serves the snapshots of all backends.
  ALTER COLUMN backend_id DROP NOT NULL,
  ADD CONSTRAINT endpoint_backend_check CHECK ((protocol = 'cosi') = (backend_id IS NOT NULL)),
  -- NULL: the one of the configuration.
  ADD COLUMN driver_name text,
  ADD COLUMN options jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN version integer NOT NULL DEFAULT 1,
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
`;

const TOKENS = `
ALTER TABLE trivet.tenant_user ADD COLUMN version integer NOT NULL DEFAULT 1;
-- session: a person at the page, by cookie. token: automation, by header; it never has more rights than its user.
CREATE TABLE trivet.admin_token (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('session', 'token')),
  name text NOT NULL,
  role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
  address text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  -- NULL: until it is revoked.
  expires_at timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES trivet.tenant_user ON DELETE CASCADE
);
CREATE UNIQUE INDEX admin_token_named ON trivet.admin_token (tenant_id, user_id, name) WHERE kind = 'token';
CREATE INDEX admin_token_by_hash ON trivet.admin_token (token_hash);
CREATE INDEX admin_token_expiry ON trivet.admin_token (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

-- A POST with an Idempotency-Key and its answer, sealed because it may hold a secret that is shown once.
CREATE TABLE trivet.idempotency_key (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  user_id uuid NOT NULL,
  key text NOT NULL,
  -- The request, since a guess of a password in it could be tried on a plain hash; with the answer once there is one.
  sealed bytea NOT NULL,
  -- NULL: the call is under way, or its process died with it.
  status smallint,
  -- Whose call it is, and when it last said that it lives: a dead process says so no more, and the next call takes over.
  claim uuid NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id, key)
);
CREATE INDEX idempotency_key_age ON trivet.idempotency_key (tenant_id, created_at);
`;

const AUDIT = `
-- tenant_id: whom the change is about; the appliance's own tenant for what is about no other. Outlives its tenant.
CREATE TABLE trivet.audit_entry (
  tenant_id uuid NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT now(),
  tenant_name text NOT NULL,
  actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'token', 'command', 'system')),
  -- A login name (ann@acme); for a token that of its user, and its own name beside it.
  actor text NOT NULL,
  token_name text,
  address text NOT NULL DEFAULT '',
  -- For example user.create.
  action text NOT NULL,
  subject_kind text NOT NULL,
  subject_id text NOT NULL DEFAULT '',
  subject_name text NOT NULL DEFAULT '',
  before jsonb,
  after jsonb,
  reason text,
  operation_id uuid,
  PRIMARY KEY (tenant_id, seq)
);
CREATE INDEX audit_entry_order ON trivet.audit_entry (seq);
CREATE INDEX audit_entry_stream ON trivet.audit_entry (xid);
`;

/**
 * Numbers of an identity are drawn before the commit, so a reader who goes by them alone misses what commits late. By the
 * transaction's own number, and never beyond the oldest one that is still open, nothing is missed.
 */
const EVENTS = `
ALTER TABLE trivet.operation ADD COLUMN actor text;
ALTER TABLE trivet.operation_event ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX operation_event_stream ON trivet.operation_event (xid);
`;

const WORKERS = `
CREATE TABLE trivet.worker (
  id uuid PRIMARY KEY,
  host text NOT NULL,
  pid integer NOT NULL,
  version text NOT NULL,
  concurrency integer NOT NULL,
  running integer NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);
-- One row a class of operations. Here and not in Redis, where a wipe would resume what a person has paused.
CREATE TABLE trivet.queue (
  class text PRIMARY KEY,
  paused boolean NOT NULL DEFAULT false,
  reason text,
  changed_by text,
  changed_at timestamptz NOT NULL DEFAULT now(),
  version integer NOT NULL DEFAULT 1
);
INSERT INTO trivet.queue (class) VALUES ('fast'), ('copy'), ('destroy'), ('index');
GRANT SELECT, INSERT, UPDATE, DELETE ON trivet.worker TO trivet_engine;
GRANT SELECT ON trivet.queue TO trivet_engine;
`;

const TABLES = ['tenant_quota', 'admin_token', 'idempotency_key', 'audit_entry'] as const;

/** Rule: append-only. */
const APPEND_ONLY = 'REVOKE UPDATE, DELETE ON trivet.audit_entry FROM trivet_app;';

const TENANT_FUNCTIONS = `
CREATE OR REPLACE FUNCTION trivet.list_tenants() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM trivet.tenant WHERE kind = 'tenant';
$$;

CREATE FUNCTION trivet.appliance_tenant() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM trivet.tenant WHERE kind = 'appliance';
$$;

-- For the appliance's administrators, and for finding the tenant that a path names.
CREATE FUNCTION trivet.all_tenants(p_name text)
RETURNS TABLE (id uuid, name text, kind text, display_name text, state text, version integer, created_at timestamptz,
               updated_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, name, kind, display_name, state, version, created_at, updated_at
    FROM trivet.tenant WHERE p_name IS NULL AND kind = 'tenant' OR name = p_name ORDER BY name;
$$;

-- No row: there is one of this name.
CREATE FUNCTION trivet.create_tenant(p_id uuid, p_name text, p_display_name text) RETURNS TABLE (tenant_id uuid)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO trivet.tenant (id, name, display_name) VALUES (p_id, p_name, p_display_name)
  ON CONFLICT (name) DO NOTHING RETURNING id;
$$;

-- No row: it is gone, or another version by now.
CREATE FUNCTION trivet.change_tenant(p_id uuid, p_version integer, p_display_name text, p_state text)
RETURNS TABLE (version integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.tenant
     SET display_name = coalesce(p_display_name, display_name), state = coalesce(p_state, state),
         version = version + 1, updated_at = now()
   WHERE id = p_id AND version = p_version AND kind = 'tenant' RETURNING version;
$$;

-- The caller has made sure, in this transaction, that nothing of it is left which a backend or a person would miss; keys
-- of other tables refuse the rest.
CREATE FUNCTION trivet.delete_tenant(p_id uuid, p_version integer) RETURNS TABLE (deleted uuid)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM trivet.tenant WHERE id = p_id AND version = p_version AND kind = 'tenant' RETURNING id;
$$;
`;

const FUNCTIONS = `
-- Rule: rights of a token.
CREATE FUNCTION trivet.find_admin_token(p_hash bytea)
RETURNS TABLE (id uuid, kind text, name text, tenant_id uuid, tenant_name text, tenant_kind text, tenant_state text,
               user_id uuid, user_name text, role text, remaining_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.id, a.kind, a.name, a.tenant_id, t.name, t.kind, t.state, u.id, u.name,
         -- A token never has more rights than its user has now; who is logged in has just those.
         CASE WHEN a.kind = 'session' THEN u.role ELSE
           (ARRAY['viewer', 'operator', 'admin'])[least(array_position(ARRAY['viewer', 'operator', 'admin'], a.role),
                                                       array_position(ARRAY['viewer', 'operator', 'admin'], u.role))] END,
         extract(epoch FROM a.expires_at - now())::double precision * 1000
    FROM trivet.admin_token a
    JOIN trivet.tenant t ON t.id = a.tenant_id
    JOIN trivet.tenant_user u ON u.tenant_id = a.tenant_id AND u.id = a.user_id AND u.state = 'active'
   WHERE a.token_hash = p_hash AND (a.expires_at IS NULL OR a.expires_at > now());
$$;

-- A page of the audit log over all tenants, newest first, for the appliance's administrators. NULL: any.
CREATE FUNCTION trivet.audit_of_all(p_before bigint, p_limit integer, p_tenant text, p_actor text, p_action text,
                                    p_subject text, p_since timestamptz, p_until timestamptz)
RETURNS SETOF trivet.audit_entry
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM trivet.audit_entry
   WHERE (p_before IS NULL OR seq < p_before)
     AND (p_tenant IS NULL OR tenant_name = p_tenant) AND (p_actor IS NULL OR actor = p_actor)
     AND (p_action IS NULL OR starts_with(action, p_action))
     AND (p_subject IS NULL OR subject_name = p_subject OR subject_id = p_subject)
     AND (p_since IS NULL OR at >= p_since) AND (p_until IS NULL OR at < p_until)
   ORDER BY seq DESC LIMIT p_limit;
$$;

-- What was written since, for the stream of events; nothing that a transaction which is still open might precede: the caller
-- gives the oldest of those.
CREATE FUNCTION trivet.audit_after(p_xid xid8, p_seq bigint, p_before xid8, p_tenant uuid, p_limit integer)
RETURNS SETOF trivet.audit_entry
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM trivet.audit_entry
   WHERE xid >= p_xid AND (xid > p_xid OR seq > p_seq) AND xid < p_before
     AND xid < pg_snapshot_xmin(pg_current_snapshot()) AND (p_tenant IS NULL OR tenant_id = p_tenant)
   ORDER BY xid, seq LIMIT p_limit;
$$;

CREATE FUNCTION trivet.list_workers()
RETURNS TABLE (id uuid, host text, pid integer, version text, concurrency integer, running integer,
               started_at timestamptz, seen_at timestamptz, seen_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id, host, pid, version, concurrency, running, started_at, seen_at,
         extract(epoch FROM now() - seen_at)::double precision * 1000
    FROM trivet.worker ORDER BY host, started_at;
$$;

CREATE FUNCTION trivet.list_queues()
RETURNS TABLE (class text, paused boolean, reason text, changed_by text, changed_at timestamptz, version integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT class, paused, reason, changed_by, changed_at, version FROM trivet.queue ORDER BY class;
$$;

CREATE FUNCTION trivet.change_queue(p_class text, p_version integer, p_paused boolean, p_reason text, p_by text)
RETURNS TABLE (version integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.queue
     SET paused = p_paused, reason = p_reason, changed_by = p_by, changed_at = now(), version = version + 1
   WHERE class = p_class AND version = p_version RETURNING version;
$$;
`;

/** Backends that several tenants share, and the sockets of all of them. */
const REGISTRY_FUNCTIONS = `
-- Rule: cordon. Error TV003 unless something new may be made there; its message is for people.
CREATE FUNCTION trivet.takes_new(p_name text, p_state text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_state <> 'active' THEN
    RAISE EXCEPTION 'backend % is %: nothing new is made there', p_name,
      CASE p_state WHEN 'draining' THEN 'being drained' ELSE p_state END USING ERRCODE = 'TV003';
  END IF;
  RETURN true;
END $$;

CREATE FUNCTION trivet.backend_shares(p_backend uuid)
RETURNS TABLE (tenant_id uuid, tenant_name text, backend_id uuid, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.tenant_id, t.name, b.id, b.name
    FROM trivet.backend b JOIN trivet.tenant t ON t.id = b.tenant_id
   WHERE b.shared_from = p_backend ORDER BY t.name, b.name;
$$;

-- Rule: shared pool. What the other tenants were promised of the pool of a shared backend, and nothing more of them.
CREATE FUNCTION trivet.promised_to_others(p_shared_from uuid, p_backend uuid, p_pool text) RETURNS TABLE (bytes numeric)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(sum(v.size_bytes), 0)
       + coalesce(sum((SELECT sum(greatest((o.request ->> 'sizeBytes')::numeric - v.size_bytes, 0))
                         FROM trivet.operation o
                        WHERE o.resource_id = v.id AND o.kind = 'volume.expand' AND o.finished_at IS NULL)), 0)
    FROM trivet.backend b
    JOIN trivet.volume v ON v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.pool = p_pool AND v.state <> 'gone'
   WHERE b.shared_from = p_shared_from AND b.id <> p_backend;
$$;

-- For gateways, which open the sockets of all tenants.
CREATE FUNCTION trivet.list_endpoints()
RETURNS TABLE (tenant_id uuid, tenant_name text, id uuid, name text, protocol text, backend_id uuid, backend_kind text,
               config jsonb, driver_name text, options jsonb, serves boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.tenant_id, t.name, e.id, e.name, e.protocol, e.backend_id, b.kind, b.config, e.driver_name, e.options,
         t.state = 'active' AND e.state = 'active'
    FROM trivet.endpoint e
    JOIN trivet.tenant t ON t.id = e.tenant_id
    LEFT JOIN trivet.backend b ON b.tenant_id = e.tenant_id AND b.id = e.backend_id
   ORDER BY e.created_at, e.id;
$$;
`;

const MADE =
  'appliance_tenant, all_tenants, create_tenant, change_tenant, delete_tenant, find_admin_token, audit_of_all, audit_after, list_workers, list_queues, change_queue, takes_new, backend_shares, promised_to_others, list_endpoints'
    .split(', ')
    .map(name => `trivet.${name}`)
    .join(', ');

const GRANTS = `
REVOKE EXECUTE ON FUNCTION ${MADE} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${MADE} TO trivet_app;
GRANT EXECUTE ON FUNCTION trivet.appliance_tenant TO trivet_engine;
`;
