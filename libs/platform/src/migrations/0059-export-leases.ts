import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const TABLES = `
-- Of a pool of a cluster, which any host may export, one at a time: its home has it by a lease. fence: grows with each host that takes it.
-- address: of the home, as the cluster sees it. lease_until: NULL: there was no other host; -infinity: given back, nothing is served
-- any more. to_fence: hosts whose daemons may still write; while there are some the new home serves nothing.
ALTER TABLE trivet.pool_home
  ADD COLUMN cluster boolean NOT NULL DEFAULT false,
  ADD COLUMN fence bigint NOT NULL DEFAULT 0,
  ADD COLUMN address text,
  ADD COLUMN lease_until timestamptz,
  ADD COLUMN to_fence jsonb NOT NULL DEFAULT '[]';
-- takes: pools of clusters that it could take over now, as its keeper said last.
ALTER TABLE trivet.storage_host ADD COLUMN takes jsonb NOT NULL DEFAULT '[]', ADD COLUMN takes_at timestamptz;

-- Addresses that this appliance has shut out of a cluster, until the host that has them serves nothing there any more.
CREATE TABLE trivet.cluster_fence (
  fsid text NOT NULL,
  address text NOT NULL,
  host text NOT NULL,
  by_host text NOT NULL,
  fenced_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (fsid, address)
);
GRANT SELECT ON trivet.cluster_fence TO trivet_engine;
`;

const FUNCTIONS = `
-- Rule: export lease. Each host says every second which pools of clusters it could serve: backend, name, its address at the cluster; able: it
-- reaches the cluster, which has not shut it out; takes: and may take it over. What it has is renewed, unless another one can take it
-- and it cannot serve it, or drains. What nobody renews is given to the next that asks and takes, with everybody who may still write. Clocks
-- of hosts decide nothing. An address stays until its host has said that nothing is served from there any more.
CREATE FUNCTION trivet.keep_exports(p_host text, p_pools jsonb, p_term_ms integer)
RETURNS TABLE (tenant_id uuid, backend_id uuid, pool text, home text, fence bigint, renewed boolean, drains boolean, address text,
               to_fence jsonb, obstacle text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  term CONSTANT interval := make_interval(secs => p_term_ms / 1000.0);
  silence CONSTANT interval := '15 seconds';
  is_draining CONSTANT boolean := EXISTS (SELECT FROM trivet.storage_host h WHERE h.name = p_host AND h.draining);
  -- A worker of the release before would serve what another one takes, and ask nobody.
  knows CONSTANT boolean := NOT EXISTS (
    SELECT FROM trivet.worker w
     WHERE w.host = p_host AND w.seen_at > now() - silence AND NOT w.tasks @> '[{"name": "export-leases"}]');
BEGIN
  UPDATE trivet.storage_host h
     SET takes_at = now(),
         takes = (SELECT coalesce(jsonb_agg(jsonb_build_object('backend', p.backend, 'name', p.name)), '[]')
                    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, takes boolean) WHERE p.takes AND knows)
   WHERE h.name = p_host;
  UPDATE trivet.pool_home h SET cluster = true, address = coalesce(h.address, p.address), lease_until = now() + term
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text, able boolean)
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.host = p_host
     AND (h.address = p.address) IS NOT FALSE
     AND (p.able AND NOT is_draining OR NOT EXISTS (
           SELECT FROM trivet.storage_host o
            WHERE o.name <> p_host AND NOT o.draining AND o.takes_at > now() - interval '3 seconds'
              AND o.takes @> jsonb_build_array(jsonb_build_object('backend', p.backend, 'name', p.name))));
  UPDATE trivet.pool_home h
     SET host = p_host, address = p.address, fence = h.fence + 1, claimed_at = now(), lease_until = now() + term,
         to_fence = CASE WHEN h.lease_until = '-infinity' THEN h.to_fence
                         ELSE h.to_fence || jsonb_build_object('host', h.host, 'address', h.address) END
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text, takes boolean),
         trivet.storage_host was, trivet.storage_host me
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.cluster AND h.host <> p_host
     AND p.takes AND knows AND NOT is_draining AND p.address IS NOT NULL AND was.name = h.host AND me.name = p_host
     AND (h.lease_until < now() OR h.lease_until IS NULL AND was.seen_at < now() - silence)
     AND (h.lease_until = '-infinity' OR h.address <> p.address
          -- The same machine under another name, of those that were given none.
          OR h.address = p.address AND NOT was.named AND NOT me.named AND was.seen_at < now() - silence);
  IF FOUND THEN PERFORM trivet.route_operations(); END IF;
  RETURN QUERY
  SELECT h.tenant_id, h.backend_id, h.pool, h.host, h.fence, h.host = p_host AND h.lease_until >= now() + term, is_draining, h.address, h.to_fence,
         CASE WHEN h.host = p_host OR h.lease_until >= now() OR h.lease_until IS NULL AND was.seen_at >= now() - silence THEN NULL
              WHEN NOT h.cluster OR h.address IS NULL THEN
                'the address of storage host ' || h.host || ' at the cluster is not known, so that it cannot be shut out: start its worker again, '
                || 'or another one with TRIVET_HOST=' || h.host
              WHEN h.address = p.address THEN
                'storage host ' || h.host || ' has the same address at the cluster, ' || h.address || ', and cannot be shut out alone: set TRIVET_HOST='
                || h.host || ' if this machine was called so before'
         END
    FROM trivet.pool_home h
    JOIN jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text) ON h.backend_id = p.backend AND h.pool = p.name
    JOIN trivet.storage_host was ON was.name = h.host;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.keep_exports(text, jsonb, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.keep_exports(text, jsonb, integer) TO trivet_engine;

-- The host has another address at the cluster, and serves nothing from the one before.
CREATE FUNCTION trivet.exports_readdressed(p_host text, p_backend uuid, p_pool text, p_fence bigint, p_address text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.pool_home h SET address = p_address
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence;
$$;
REVOKE EXECUTE ON FUNCTION trivet.exports_readdressed(text, uuid, text, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.exports_readdressed(text, uuid, text, bigint, text) TO trivet_engine;

-- There is no other host: nothing ends what it serves. Whoever comes later must know whom to shut out.
CREATE FUNCTION trivet.serve_exports_alone(p_host text, p_pools jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.pool_home h SET cluster = true, address = coalesce(h.address, p.address), lease_until = NULL
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text)
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.host = p_host;
$$;
REVOKE EXECUTE ON FUNCTION trivet.serve_exports_alone(text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.serve_exports_alone(text, jsonb) TO trivet_engine;

-- Nobody whom the cluster still lets in may write to the pool any more. False: somebody else has it by now.
CREATE FUNCTION trivet.exports_fenced(p_host text, p_backend uuid, p_pool text, p_fence bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE trivet.pool_home h SET to_fence = '[]'
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence;
  RETURN FOUND;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.exports_fenced(text, uuid, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.exports_fenced(text, uuid, text, bigint) TO trivet_engine;

-- What becomes of a pool when a worker leaves in order. others: more workers of its host have it. successor: a host that lives can take it.
-- kept: nobody can, so it is served on without a worker, for p_kept_ms.
CREATE FUNCTION trivet.leave_exports(p_host text, p_worker uuid, p_backend uuid, p_pool text, p_fence bigint, p_kept_ms integer)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM trivet.worker w
              WHERE w.host = p_host AND w.id <> p_worker AND w.seen_at > now() - interval '15 seconds') THEN RETURN 'others'; END IF;
  IF EXISTS (SELECT FROM trivet.storage_host o
              WHERE o.name <> p_host AND NOT o.draining AND o.takes_at > now() - interval '3 seconds'
                AND o.takes @> jsonb_build_array(jsonb_build_object('backend', p_backend, 'name', p_pool))) THEN RETURN 'successor'; END IF;
  UPDATE trivet.pool_home h SET lease_until = now() + make_interval(secs => p_kept_ms / 1000.0)
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence AND h.lease_until > now();
  RETURN CASE WHEN FOUND THEN 'kept' ELSE 'others' END;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.leave_exports(text, uuid, uuid, text, bigint, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.leave_exports(text, uuid, uuid, text, bigint, integer) TO trivet_engine;

-- The host serves it no more. in_order: and nothing that it has begun can come later.
CREATE FUNCTION trivet.release_exports(p_host text, p_backend uuid, p_pool text, p_fence bigint, p_in_order boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.pool_home h SET lease_until = CASE WHEN p_in_order THEN '-infinity'::timestamptz ELSE now() - interval '1 ms' END
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence;
$$;
REVOKE EXECUTE ON FUNCTION trivet.release_exports(text, uuid, text, bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.release_exports(text, uuid, text, bigint, boolean) TO trivet_engine;

-- Written before the cluster is told: what it has on its list and is not here is somebody else's.
CREATE FUNCTION trivet.note_cluster_fences(p_fsid text, p_fenced jsonb, p_by text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO trivet.cluster_fence (fsid, address, host, by_host)
  SELECT DISTINCT ON (f.address) p_fsid, f.address, f.host, p_by FROM jsonb_to_recordset(p_fenced) AS f (host text, address text)
  ON CONFLICT (fsid, address) DO UPDATE SET host = excluded.host, by_host = excluded.by_host, fenced_at = clock_timestamp();
$$;
REVOKE EXECUTE ON FUNCTION trivet.note_cluster_fences(text, jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.note_cluster_fences(text, jsonb, text) TO trivet_engine;

-- One that was renewed meanwhile stays.
CREATE FUNCTION trivet.forget_cluster_fence(p_fsid text, p_address text, p_fenced_at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM trivet.cluster_fence f WHERE f.fsid = p_fsid AND f.address = p_address AND f.fenced_at = p_fenced_at;
$$;
REVOKE EXECUTE ON FUNCTION trivet.forget_cluster_fence(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.forget_cluster_fence(text, text, timestamptz) TO trivet_engine;
`;

/** Of several hosts one exports a pool of a cluster, by a lease. */
export class ExportLeases1797210000330 implements Migration {
  readonly locks: Migration['locks'] = {
    pool_home: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
    storage_host: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES);
    await runner.query(FUNCTIONS);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const one of [
      'forget_cluster_fence(text, text, timestamptz)',
      'note_cluster_fences(text, jsonb, text)',
      'release_exports(text, uuid, text, bigint, boolean)',
      'leave_exports(text, uuid, uuid, text, bigint, integer)',
      'serve_exports_alone(text, jsonb)',
      'exports_fenced(text, uuid, text, bigint)',
      'exports_readdressed(text, uuid, text, bigint, text)',
      'keep_exports(text, jsonb, integer)',
    ])
      await runner.query(`DROP FUNCTION trivet.${one}`);
    await runner.query('DROP TABLE trivet.cluster_fence');
    await runner.query('ALTER TABLE trivet.storage_host DROP COLUMN takes, DROP COLUMN takes_at');
    await runner.query(
      'ALTER TABLE trivet.pool_home DROP COLUMN cluster, DROP COLUMN fence, DROP COLUMN address, DROP COLUMN lease_until, DROP COLUMN to_fence',
    );
  }
}
