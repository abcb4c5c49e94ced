import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const TABLES = `
-- Machines that workers run on. named: by TRIVET_HOST. machine: the run of its kernel, which all containers of it share.
-- reach: what it can work on. down_at: since when its operations are held, because it is silent.
CREATE TABLE trivet.storage_host (
  name text PRIMARY KEY,
  named boolean NOT NULL,
  machine text NOT NULL,
  release text NOT NULL,
  reach jsonb NOT NULL DEFAULT '{}',
  memory_free_bytes bigint NOT NULL DEFAULT 0,
  added_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now(),
  down_at timestamptz
) WITH (fillfactor = 50);
GRANT SELECT ON trivet.storage_host TO trivet_engine;

-- The one host that has the file system of a pool.
CREATE TABLE trivet.pool_home (
  tenant_id uuid NOT NULL,
  backend_id uuid NOT NULL,
  pool text NOT NULL,
  host text NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, backend_id, pool),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX pool_home_host ON trivet.pool_home (host);
GRANT SELECT ON trivet.pool_home TO trivet_app, trivet_engine;
ALTER TABLE trivet.pool_home ENABLE ROW LEVEL SECURITY;
ALTER TABLE trivet.pool_home FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON trivet.pool_home TO trivet_app
  USING (tenant_id = trivet.current_tenant()) WITH CHECK (tenant_id = trivet.current_tenant());
CREATE POLICY engine ON trivet.pool_home TO trivet_engine USING (true);
CREATE POLICY owner ON trivet.pool_home TO trivet_owner USING (true) WITH CHECK (true);

ALTER TABLE trivet.operation ADD COLUMN pool text, ADD COLUMN host text;
`;

const FUNCTIONS = `
-- The name under which a worker takes part. One that was given none is of the same host as the others of its machine, whatever the
-- containers are called.
CREATE FUNCTION trivet.join_storage_host(p_name text, p_named boolean, p_machine text, p_release text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known text := p_name;
BEGIN
  PERFORM pg_advisory_xact_lock(51);
  IF NOT p_named AND NOT EXISTS (SELECT FROM trivet.storage_host h WHERE h.name = p_name) THEN
    SELECT h.name INTO known FROM trivet.storage_host h
     WHERE h.machine = p_machine AND NOT h.named ORDER BY h.seen_at DESC LIMIT 1;
  END IF;
  INSERT INTO trivet.storage_host (name, named, machine, release)
  VALUES (coalesce(known, p_name), p_named, p_machine, p_release)
  ON CONFLICT (name) DO UPDATE SET named = excluded.named, machine = excluded.machine, release = excluded.release, seen_at = now();
  RETURN coalesce(known, p_name);
END $$;
REVOKE EXECUTE ON FUNCTION trivet.join_storage_host(text, boolean, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.join_storage_host(text, boolean, text, text) TO trivet_engine;

-- Rule: home host. Where more than one host is, an operation on a pool is of the pool's host. Of a host that is silent it is held: it has no
-- place, and is not due. Running ones of it are held when their lease is over.
CREATE FUNCTION trivet.route_operation() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  silent boolean;
BEGIN
  NEW.pool := CASE NEW.resource_kind
    WHEN 'volume' THEN (SELECT v.pool FROM trivet.volume v WHERE v.tenant_id = NEW.tenant_id AND v.id = NEW.resource_id)
    WHEN 'snapshot' THEN (SELECT s.pool FROM trivet.snapshot s WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.resource_id)
    WHEN 'publication' THEN (SELECT v.pool FROM trivet.publication p
                               JOIN trivet.volume v ON v.tenant_id = p.tenant_id AND v.id = p.volume_id
                              WHERE p.tenant_id = NEW.tenant_id AND p.id = NEW.resource_id)
    ELSE (SELECT min(s.pool) FROM trivet.snapshot s
           WHERE s.tenant_id = NEW.tenant_id AND s.snapshot_group_id = NEW.resource_id AND s.state <> 'gone') END;
  SELECT h.host, s.down_at IS NOT NULL INTO NEW.host, silent
    FROM trivet.pool_home h JOIN trivet.storage_host s ON s.name = h.host
   WHERE h.tenant_id = NEW.tenant_id AND h.backend_id = NEW.backend_id AND h.pool = NEW.pool
     AND EXISTS (SELECT FROM trivet.storage_host other WHERE other.name <> h.host);
  IF silent THEN
    NEW.next_run_at := 'infinity';
    NEW.place := NULL;
    NEW.dispatch_no := 0;
    NEW.dispatched_at := NULL;
  END IF;
  RETURN NEW;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.route_operation() FROM PUBLIC;
CREATE TRIGGER route_operation BEFORE INSERT ON trivet.operation FOR EACH ROW
  WHEN (NEW.resource_kind IN ('volume', 'snapshot', 'snapshot_group', 'publication'))
  EXECUTE FUNCTION trivet.route_operation();

-- Holds what silent hosts have, lets go of what is held of others, and gives each operation to the host that its pool has now: an
-- acceptance may have read what was before. Whoever is locked has its turn the next time.
CREATE FUNCTION trivet.route_operations() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH routed AS MATERIALIZED (
    SELECT o.tenant_id, o.id, h.host, s.down_at IS NOT NULL AS silent,
           s.down_at IS NOT NULL AND o.state = 'running' AND o.lease_until <= now() AS lost
      FROM trivet.pool_home h
      JOIN trivet.storage_host s ON s.name = h.host
      JOIN trivet.operation o ON o.tenant_id = h.tenant_id AND o.backend_id = h.backend_id AND o.pool = h.pool
     WHERE o.finished_at IS NULL AND o.pool IS NOT NULL
       AND (o.host IS DISTINCT FROM h.host
         OR s.down_at IS NOT NULL AND (o.state = 'pending' AND o.next_run_at < 'infinity'
                                    OR o.state = 'running' AND o.lease_until <= now() AND o.dispatched_at < 'infinity')
         OR s.down_at IS NULL AND (o.next_run_at = 'infinity' OR o.dispatched_at = 'infinity'))
       FOR UPDATE OF o SKIP LOCKED
  )
  UPDATE trivet.operation o
     SET host = routed.host,
         place = CASE WHEN silent AND state = 'pending' OR lost THEN NULL ELSE place END,
         next_run_at = CASE WHEN silent AND state = 'pending' THEN 'infinity'
                            WHEN NOT silent AND next_run_at = 'infinity' THEN now() ELSE next_run_at END,
         dispatched_at = CASE WHEN lost THEN 'infinity'
                              WHEN NOT silent AND dispatched_at = 'infinity' THEN now() - interval '1 hour' ELSE dispatched_at END
    FROM routed
   WHERE o.tenant_id = routed.tenant_id AND o.id = routed.id;
$$;
REVOKE EXECUTE ON FUNCTION trivet.route_operations() FROM PUBLIC;

-- A host lives, and says what it can reach. Gives whether there are others: then, and only then, operations are routed. One that was silent
-- for a day and has no pool is forgotten.
CREATE FUNCTION trivet.storage_host_beat(p_name text, p_named boolean, p_machine text, p_release text, p_reach jsonb, p_free bigint)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO trivet.storage_host (name, named, machine, release, reach, memory_free_bytes)
  VALUES (p_name, p_named, p_machine, p_release, coalesce(p_reach, '{}'), p_free)
  ON CONFLICT (name) DO UPDATE
     SET release = excluded.release, reach = coalesce(p_reach, storage_host.reach), memory_free_bytes = excluded.memory_free_bytes, seen_at = now(), down_at = NULL;
  IF NOT EXISTS (SELECT FROM trivet.storage_host h WHERE h.name <> p_name) THEN RETURN false; END IF;
  DELETE FROM trivet.storage_host h
   WHERE h.seen_at < now() - interval '1 day' AND NOT EXISTS (SELECT FROM trivet.pool_home p WHERE p.host = h.name);
  UPDATE trivet.storage_host h SET down_at = h.seen_at
   WHERE h.down_at IS NULL AND h.seen_at < now() - interval '15 seconds'
     AND NOT EXISTS (SELECT FROM trivet.worker w WHERE w.host = h.name AND w.seen_at > now() - interval '15 seconds');
  PERFORM trivet.route_operations();
  RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.storage_host_beat(text, boolean, text, text, jsonb, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.storage_host_beat(text, boolean, text, text, jsonb, bigint) TO trivet_engine;

-- The home of a pool that p_host has before itself: its own from now on if it was nobody's. Where nobody was given a name, a host that is
-- silent had another one: containers get new names. alive: the home says that it lives, and that it has the pool, too.
CREATE FUNCTION trivet.claim_pool(p_host text, p_tenant uuid, p_backend uuid, p_pool text) RETURNS TABLE (home text, alive boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host) VALUES (p_tenant, p_backend, p_pool, p_host)
  ON CONFLICT DO NOTHING;
  UPDATE trivet.pool_home h SET host = p_host, claimed_at = now()
    FROM trivet.storage_host was, trivet.storage_host me
   WHERE h.tenant_id = p_tenant AND h.backend_id = p_backend AND h.pool = p_pool AND h.host <> p_host
     AND was.name = h.host AND me.name = p_host AND NOT was.named AND NOT me.named
     AND was.seen_at < now() - interval '15 seconds';
  RETURN QUERY
  SELECT h.host, s.seen_at > now() - interval '15 seconds'
             AND s.reach -> 'pools' @> jsonb_build_array(jsonb_build_object('backend', p_backend, 'name', p_pool))
    FROM trivet.pool_home h JOIN trivet.storage_host s ON s.name = h.host
   WHERE h.tenant_id = p_tenant AND h.backend_id = p_backend AND h.pool = p_pool;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.claim_pool(text, uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.claim_pool(text, uuid, uuid, text) TO trivet_engine;

-- Why an operation of this host is held; null: it is not.
CREATE FUNCTION trivet.host_silence(p_host text, p_pool text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'storage host ' || s.name || ', which has pool ' || p_pool || ', is silent since '
         || to_char(s.seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM trivet.storage_host s WHERE s.name = p_host AND s.down_at IS NOT NULL;
$$;
REVOKE EXECUTE ON FUNCTION trivet.host_silence(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.host_silence(text, text) TO trivet_app, trivet_engine;

-- Without what is a tenant's: names and figures of machines.
CREATE FUNCTION trivet.list_storage_hosts()
RETURNS TABLE (name text, release text, reach jsonb, memory_free_bytes bigint, workers integer, home_of integer, waiting integer,
               seen_at timestamptz, silent_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.name, h.release, h.reach, h.memory_free_bytes,
         (SELECT count(*)::integer FROM trivet.worker w WHERE w.host = h.name AND w.seen_at > now() - interval '15 seconds'),
         (SELECT count(*)::integer FROM trivet.pool_home p WHERE p.host = h.name),
         CASE WHEN h.down_at IS NULL THEN 0 ELSE
           (SELECT count(*)::integer FROM trivet.pool_home p
              JOIN trivet.operation o ON o.tenant_id = p.tenant_id AND o.backend_id = p.backend_id AND o.pool = p.pool
             WHERE p.host = h.name AND o.finished_at IS NULL AND o.pool IS NOT NULL
               AND trivet.no_worker_has(o.state, o.lease_until)) END,
         h.seen_at, extract(epoch FROM now() - h.seen_at)::double precision * 1000
    FROM trivet.storage_host h ORDER BY h.name;
$$;
REVOKE EXECUTE ON FUNCTION trivet.list_storage_hosts() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.list_storage_hosts() TO trivet_app, trivet_engine;
`;

/** Pools have a home host, and operations on them go there. */
export class StorageHosts1797210000250 implements Migration {
  readonly locks: Migration['locks'] = {
    operation: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
    backend: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES);
    await runner.query(FUNCTIONS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER route_operation ON trivet.operation');
    for (const one of [
      'list_storage_hosts()',
      'host_silence(text, text)',
      'claim_pool(text, uuid, uuid, text)',
      'storage_host_beat(text, boolean, text, text, jsonb, bigint)',
      'route_operations()',
      'route_operation()',
      'join_storage_host(text, boolean, text, text)',
    ])
      await runner.query(`DROP FUNCTION trivet.${one}`);
    await runner.query('ALTER TABLE trivet.operation DROP COLUMN host, DROP COLUMN pool');
    await runner.query('DROP TABLE trivet.pool_home');
    await runner.query('DROP TABLE trivet.storage_host');
    // What was held is due again.
    await runner.query("UPDATE trivet.operation SET next_run_at = now() WHERE next_run_at = 'infinity'");
    await runner.query("UPDATE trivet.operation SET dispatched_at = now() WHERE dispatched_at = 'infinity'");
  }
}
