import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

/** Tenants, the operation engine, and the object leg. Names and rules: docs/adr/0003 and 0004. */
export class Foundation1795132800000 implements Migration {
  // All tables are its own.
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [TENANCY, ENGINE, OBJECTS, ROW_SECURITY, FUNCTIONS]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP SCHEMA trivet CASCADE');
  }
}

const TENANCY = `
REVOKE ALL ON SCHEMA trivet FROM PUBLIC;
GRANT USAGE ON SCHEMA trivet TO trivet_app, trivet_engine;

-- Rule: tenant isolation. After a transaction-local setting has ended its value is '' and not NULL: both mean no tenant.
CREATE FUNCTION trivet.current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('trivet.tenant', true), '')::uuid;

-- One row: goes into ownership tags at the backends, so that two appliances never take each other's objects.
CREATE TABLE trivet.appliance (
  id uuid PRIMARY KEY,
  singleton boolean NOT NULL DEFAULT true UNIQUE CHECK (singleton),
  created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO trivet.appliance (id) VALUES (gen_random_uuid());

CREATE TABLE trivet.tenant (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'suspended')),
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE trivet.backend (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  id uuid NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  config jsonb NOT NULL,
  version integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name)
);

-- A door: what comes in by it belongs to this tenant and goes to this backend.
CREATE TABLE trivet.endpoint (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  name text NOT NULL,
  protocol text NOT NULL CHECK (protocol IN ('cosi')),
  backend_id uuid NOT NULL,
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'suspended')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend
);

-- The only place of a secret. Sealed under a data key of its own with (tenant, table, row, column) as associated data.
CREATE TABLE trivet.secret (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  owner_table text NOT NULL,
  owner_id uuid NOT NULL,
  name text NOT NULL,
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, owner_table, owner_id, name)
);
`;

const ENGINE = `
CREATE TABLE trivet.operation (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant,
  id uuid NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  class text NOT NULL,
  backend_id uuid NOT NULL,
  resource_kind text NOT NULL,
  resource_id uuid NOT NULL,
  resource_name text NOT NULL,
  request jsonb NOT NULL,
  state text NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'needs_attention')),
  -- A negation (delete of what is being created) goes before whatever else waits for the resource.
  priority smallint NOT NULL DEFAULT 0,
  step text,
  progress jsonb NOT NULL DEFAULT '{}',
  attempt integer NOT NULL DEFAULT 0,
  crashes integer NOT NULL DEFAULT 0,
  -- Only grows; a write that carries an older one changes nothing.
  fence bigint NOT NULL DEFAULT 0,
  lease_owner uuid,
  lease_until timestamptz,
  dispatch_no integer NOT NULL DEFAULT 0,
  dispatched_at timestamptz,
  -- Whoever is dispatched has one of the places of its tenant, backend and class until its attempt ends.
  place smallint CHECK (place > 0),
  next_run_at timestamptz NOT NULL DEFAULT now(),
  cancel_requested_at timestamptz,
  waited boolean NOT NULL DEFAULT false,
  result jsonb,
  error jsonb,
  traceparent text,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz,
  PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
-- What the planner may choose from is no accident. Statements are planned when the tables are still empty and no column
-- has statistics; then an index that begins with the tenant looks as good as the right one, and reads all that a tenant
-- ever did. So only those indexes begin with it that are looked up by more than it. No index has the state in it: taking
-- a lease and a recovery point change the row in its place.
CREATE INDEX operation_by_id ON trivet.operation (id);
CREATE INDEX operation_unfinished ON trivet.operation (seq) WHERE finished_at IS NULL;
-- Rule: tenant cap. There are no two of one place, whatever gateways and workers there are.
CREATE UNIQUE INDEX operation_place ON trivet.operation (tenant_id, backend_id, class, place) WHERE place IS NOT NULL;
CREATE INDEX operation_waiting ON trivet.operation (tenant_id, backend_id, class, priority DESC, seq)
  WHERE place IS NULL AND finished_at IS NULL;
CREATE INDEX operation_finished ON trivet.operation (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX operation_of_resource ON trivet.operation (resource_id, seq);

-- What an unfinished operation needs for itself. Two operations may run together unless they share a slot of a
-- resource: that is the whole compatibility matrix. Rule: slots. The unique index, and no lock server, keeps promise P3.
CREATE TABLE trivet.operation_slot (
  tenant_id uuid NOT NULL,
  operation_id uuid NOT NULL,
  resource_id uuid NOT NULL,
  slot text NOT NULL,
  -- The operation's own resource: there the order of the line binds. Elsewhere only exclusion does.
  own boolean NOT NULL,
  seq bigint NOT NULL,
  priority smallint NOT NULL,
  held boolean NOT NULL DEFAULT false,
  -- A backend call went unanswered: nobody touches the resource before its horizon has passed.
  busy_until timestamptz,
  -- Its operation waits for a person: nobody else need wait for this place.
  parked boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant_id, operation_id, resource_id, slot)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX operation_slot_held ON trivet.operation_slot (tenant_id, resource_id, slot) WHERE held;
CREATE INDEX operation_slot_line ON trivet.operation_slot (resource_id, slot, seq);

CREATE TABLE trivet.operation_event (
  tenant_id uuid NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  operation_id uuid NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  type text NOT NULL,
  detail jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant_id, seq)
);
CREATE INDEX operation_event_of ON trivet.operation_event (operation_id, seq);

-- Rule: history. Instead of foreign keys: slots and events are only written by the statement that writes their operation, and a key would
-- look it up, and lock it, six times for each operation. What goes with it goes by this.
CREATE FUNCTION trivet.forget_operations() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM trivet.operation_slot WHERE operation_id = ANY (ARRAY(SELECT id FROM forgotten));
  DELETE FROM trivet.operation_event WHERE operation_id = ANY (ARRAY(SELECT id FROM forgotten));
  RETURN NULL;
END $$;
CREATE TRIGGER forget_operations AFTER DELETE ON trivet.operation
  REFERENCING OLD TABLE AS forgotten FOR EACH STATEMENT EXECUTE FUNCTION trivet.forget_operations();

-- Open: the backend is down, so its operations stay here and out of worker slots.
CREATE TABLE trivet.backend_circuit (
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  open_until timestamptz,
  probed_at timestamptz,
  reason text,
  PRIMARY KEY (tenant_id, backend_id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
);
`;

const OBJECTS = `
-- Rule: one life. The live row is the idempotency key. id is the incarnation: the name may live again, the id never does.
CREATE TABLE trivet.bucket (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  name text NOT NULL,
  -- A registered bucket existed before us: it is never deleted, emptied or reconfigured.
  origin text NOT NULL CHECK (origin IN ('created', 'registered')),
  state text NOT NULL CHECK (state IN ('creating', 'ready', 'deleting', 'gone')),
  desired jsonb NOT NULL,
  fingerprint bytea NOT NULL,
  -- Committed before the create call: without it an untagged bucket is not ours, whoever owns it.
  seen_absent boolean NOT NULL DEFAULT false,
  active_operation uuid,
  -- Set by the audit when the backend contradicts us: {type, message, at}.
  condition jsonb,
  audited_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend
);
CREATE UNIQUE INDEX bucket_live ON trivet.bucket (tenant_id, backend_id, name) WHERE state <> 'gone';
CREATE INDEX bucket_gone ON trivet.bucket (tenant_id, updated_at) WHERE state = 'gone';
CREATE INDEX bucket_audit ON trivet.bucket (tenant_id, audited_at) WHERE state = 'ready';

CREATE TABLE trivet.access (
  tenant_id uuid NOT NULL,
  id uuid NOT NULL,
  backend_id uuid NOT NULL,
  name text NOT NULL,
  account_id text NOT NULL,
  state text NOT NULL CHECK (state IN ('granting', 'ready', 'revoking', 'gone')),
  desired jsonb NOT NULL,
  fingerprint bytea NOT NULL,
  -- The backend no longer says what was granted (a bucket was deleted, the audit found a change): the next Grant takes
  -- the long way, and heals it or says why not.
  stale boolean NOT NULL DEFAULT false,
  active_operation uuid,
  audited_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend
);
CREATE INDEX access_gone ON trivet.access (tenant_id, updated_at) WHERE state = 'gone';
CREATE INDEX access_audit ON trivet.access (tenant_id, audited_at) WHERE state = 'ready';
CREATE UNIQUE INDEX access_live ON trivet.access (tenant_id, backend_id, name) WHERE state <> 'gone';
CREATE UNIQUE INDEX access_account ON trivet.access (tenant_id, backend_id, account_id) WHERE state <> 'gone';

-- A bucket's policy is generated from these rows under its policy slot. wanted: accepted, principal not there yet;
-- applied: belongs into the policy; revoked: stays as a Deny while the principal lives; removing: leaves the policy.
CREATE TABLE trivet.bucket_grant (
  tenant_id uuid NOT NULL,
  access_id uuid NOT NULL,
  bucket_id uuid NOT NULL,
  mode text NOT NULL CHECK (mode IN ('read_write', 'read_only', 'write_only')),
  state text NOT NULL CHECK (state IN ('wanted', 'applied', 'revoked', 'removing')),
  PRIMARY KEY (tenant_id, access_id, bucket_id),
  FOREIGN KEY (tenant_id, access_id) REFERENCES trivet.access,
  FOREIGN KEY (tenant_id, bucket_id) REFERENCES trivet.bucket
);
CREATE INDEX bucket_grant_of_bucket ON trivet.bucket_grant (tenant_id, bucket_id);
`;

const TENANT_TABLES = [
  'backend',
  'endpoint',
  'secret',
  'operation',
  'operation_slot',
  'operation_event',
  'backend_circuit',
  'bucket',
  'access',
  'bucket_grant',
];
const ENGINE_TABLES = ['operation', 'operation_slot', 'operation_event', 'backend_circuit'];

const ROW_SECURITY = [
  `GRANT SELECT ON trivet.appliance TO trivet_app, trivet_engine;
   GRANT SELECT ON trivet.tenant TO trivet_app;
   ALTER TABLE trivet.tenant ENABLE ROW LEVEL SECURITY;
   ALTER TABLE trivet.tenant FORCE ROW LEVEL SECURITY;
   CREATE POLICY own ON trivet.tenant TO trivet_app USING (id = trivet.current_tenant());
   CREATE POLICY owner ON trivet.tenant TO trivet_owner USING (true) WITH CHECK (true);`,
  rowSecurity(TENANT_TABLES),
  ...ENGINE_TABLES.map(
    table => `GRANT SELECT, INSERT, UPDATE, DELETE ON trivet.${table} TO trivet_engine;
   CREATE POLICY engine ON trivet.${table} TO trivet_engine USING (true) WITH CHECK (true);
   -- IS TRUE: no index is chosen for the policy's sake. Statements of the engine say by what they look up.
   ALTER POLICY tenant ON trivet.${table}
     USING ((tenant_id = trivet.current_tenant()) IS TRUE) WITH CHECK ((tenant_id = trivet.current_tenant()) IS TRUE);`,
  ),
  // Rule: append-only. History is written, never rewritten; it goes only with its operation.
  'REVOKE UPDATE, DELETE ON trivet.operation_event FROM trivet_app, trivet_engine;',
].join('\n');

/** isOpen: of a circuit, by the name of its row and a point. A later release says it by a function. */
export const readOutcomesFunction = (isOpen: (row: string) => string): string => `
CREATE OR REPLACE FUNCTION trivet.read_outcomes(p_tenant uuid, p_ids uuid[])
RETURNS TABLE (id uuid, state text, error jsonb, result jsonb, next_run_at timestamptz, circuit text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  RETURN QUERY
    SELECT o.id, o.state, o.error, o.result, o.next_run_at, c.reason
      FROM trivet.operation o
      LEFT JOIN trivet.backend_circuit c
        ON c.tenant_id = p_tenant AND c.backend_id = o.backend_id AND ${isOpen('c.')}
     WHERE o.tenant_id = p_tenant AND o.id = ANY (p_ids);
END $$;
`;

/**
 * Two sorts. SECURITY INVOKER with the tenant as first argument: one statement sets the tenant and reads, for the paths
 * that sidecars repeat (6,000 calls/s against 3,500 with a transaction around the read). SECURITY DEFINER: what must be
 * known before a tenant is; each returns just that (invariant T1).
 */
const FUNCTIONS = `
-- Of each name one row, in their order, if the endpoint exists: whether it serves, and the bucket, if it lives.
CREATE FUNCTION trivet.find_buckets(p_tenant uuid, p_endpoint uuid, p_names text[])
RETURNS TABLE (serves boolean, id uuid, origin text, state text, fingerprint bytea, active_operation uuid,
               condition jsonb)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  RETURN QUERY
    SELECT t.state = 'active' AND e.state = 'active', b.id, b.origin, b.state, b.fingerprint, b.active_operation,
           b.condition
      FROM trivet.endpoint e
      JOIN trivet.tenant t ON t.id = e.tenant_id
     CROSS JOIN unnest(p_names) WITH ORDINALITY AS wanted (name, nth)
      LEFT JOIN LATERAL (
             SELECT * FROM trivet.bucket
              WHERE bucket.tenant_id = p_tenant AND bucket.backend_id = e.backend_id AND bucket.name = wanted.name
                AND bucket.state <> 'gone'
              LIMIT 1) AS b ON true
     WHERE e.tenant_id = p_tenant AND e.id = p_endpoint
     ORDER BY wanted.nth;
END $$;

CREATE FUNCTION trivet.find_access(p_tenant uuid, p_endpoint uuid, p_name text)
RETURNS TABLE (serves boolean, id uuid, account_id text, state text, fingerprint bytea, active_operation uuid,
               stale boolean, sealed bytea)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  RETURN QUERY
    SELECT t.state = 'active' AND e.state = 'active', a.id, a.account_id, a.state, a.fingerprint, a.active_operation,
           a.stale, s.sealed
      FROM trivet.endpoint e
      JOIN trivet.tenant t ON t.id = e.tenant_id
      LEFT JOIN trivet.access a
        ON a.tenant_id = p_tenant AND a.backend_id = e.backend_id AND a.name = p_name AND a.state <> 'gone'
      LEFT JOIN trivet.secret s
        ON s.tenant_id = p_tenant AND s.owner_table = 'access' AND s.owner_id = a.id AND s.name = 'credentials'
     WHERE e.tenant_id = p_tenant AND e.id = p_endpoint;
END $$;

${readOutcomesFunction(row => `${row}open_until > now()`)}

-- Rule: fence. Ends the transaction of a worker whose lease is lost: its commit is already on the way.
CREATE FUNCTION trivet.fenced(p_found anyelement) RETURNS anyelement
LANGUAGE plpgsql AS $$
BEGIN
  IF p_found IS NULL THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'TV001';
  END IF;
  RETURN p_found;
END $$;

-- Rule: tenant cap. Free places up to it, for the transaction that asks. Who takes one holds its lock from before the look that finds
-- it free until the commit: so nobody waits for anybody, and no two take the same. Passing a place on needs no lock.
CREATE FUNCTION trivet.take_places(p_tenant uuid, p_backend uuid, p_class text, p_cap integer, p_wanted bigint)
RETURNS TABLE (place smallint)
LANGUAGE plpgsql AS $$
DECLARE
  line bigint := hashtextextended(concat_ws('/', p_tenant, p_backend, p_class), 0);
  locked smallint[];
BEGIN
  LOOP
    locked := ARRAY(
      SELECT free.n
        FROM (SELECT n::smallint AS n FROM generate_series(1, p_cap) AS n
              EXCEPT
              SELECT o.place FROM trivet.operation o
               WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class AND o.place IS NOT NULL
               ORDER BY n OFFSET 0) AS free
       WHERE pg_try_advisory_xact_lock(line # free.n)
       LIMIT p_wanted);
    -- The look above may be older than the lock; this one is not.
    RETURN QUERY
      SELECT n FROM unnest(locked) AS n
       WHERE NOT EXISTS (SELECT FROM trivet.operation o
                          WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class
                            AND o.place = n);
    EXIT WHEN FOUND OR cardinality(locked) = 0;
  END LOOP;
END $$;

CREATE FUNCTION trivet.resolve_endpoint(p_tenant text, p_endpoint text)
RETURNS TABLE (tenant_id uuid, endpoint_id uuid, backend_id uuid, backend_name text, backend_kind text, config jsonb,
               serves boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.tenant_id, e.id, e.backend_id, b.name, b.kind, b.config, t.state = 'active' AND e.state = 'active'
    FROM trivet.endpoint e
    JOIN trivet.tenant t ON t.id = e.tenant_id
    JOIN trivet.backend b ON b.tenant_id = e.tenant_id AND b.id = e.backend_id
   WHERE t.name = p_tenant AND e.name = p_endpoint;
$$;

CREATE FUNCTION trivet.list_tenants() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM trivet.tenant;
$$;

-- For readiness: is the schema the one that this release was built for?
CREATE FUNCTION trivet.schema_version() RETURNS TABLE (version bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT max("timestamp") FROM trivet.migration;
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA trivet FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA trivet TO trivet_app;
GRANT EXECUTE ON FUNCTION trivet.current_tenant(), trivet.list_tenants(), trivet.schema_version(),
  trivet.take_places(uuid, uuid, text, integer, bigint) TO trivet_engine;
`;
