import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const COLUMNS = `
-- Set by a person: it takes no further pool into use.
ALTER TABLE trivet.storage_host
  ADD COLUMN draining boolean NOT NULL DEFAULT false,
  ADD COLUMN draining_reason text,
  ADD COLUMN draining_by text,
  ADD COLUMN draining_since timestamptz;
`;

const DRAINING = ['draining boolean', 'draining_reason text', 'draining_by text', 'draining_since timestamptz'];

/** @param more columns of the table */
const list = (more: readonly string[]): string => `
DROP FUNCTION trivet.list_storage_hosts();
-- Without what is a tenant's: names and figures of machines.
CREATE FUNCTION trivet.list_storage_hosts()
RETURNS TABLE (name text, release text, reach jsonb, memory_free_bytes bigint, workers integer, home_of integer, waiting integer,
               ${['seen_at timestamptz', 'silent_ms double precision', ...more].join(', ')})
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.name, h.release, h.reach, h.memory_free_bytes,
         (SELECT count(*)::integer FROM trivet.worker w WHERE w.host = h.name AND w.seen_at > now() - interval '15 seconds'),
         (SELECT count(*)::integer FROM trivet.pool_home p WHERE p.host = h.name),
         CASE WHEN h.down_at IS NULL THEN 0 ELSE
           (SELECT count(*)::integer FROM trivet.pool_home p
              JOIN trivet.operation o ON o.tenant_id = p.tenant_id AND o.backend_id = p.backend_id AND o.pool = p.pool
             WHERE p.host = h.name AND o.finished_at IS NULL AND o.pool IS NOT NULL
               AND trivet.no_worker_has(o.state, o.lease_until)) END,
         ${['h.seen_at', 'extract(epoch FROM now() - h.seen_at)::double precision * 1000', ...more.map(column => `h.${column.split(' ')[0]}`)].join(', ')}
    FROM trivet.storage_host h ORDER BY h.name;
$$;
REVOKE EXECUTE ON FUNCTION trivet.list_storage_hosts() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.list_storage_hosts() TO trivet_app, trivet_engine;
`;

const CLAIM = {
  before: { insert: ' VALUES (p_tenant, p_backend, p_pool, p_host)', follows: '', end: '' },
  now: {
    insert: `
  SELECT p_tenant, p_backend, p_pool, p_host WHERE trivet.may_take_pool(p_host, p_tenant, p_backend, p_pool)`,
    follows: ' AND NOT me.draining',
    end: `
  -- It remains nobody's.
  IF NOT FOUND THEN RETURN QUERY SELECT NULL::text, NULL::boolean; END IF;`,
  },
};

const claim = ({ insert, follows, end }: (typeof CLAIM)['now']): string => `
CREATE OR REPLACE FUNCTION trivet.claim_pool(p_host text, p_tenant uuid, p_backend uuid, p_pool text) RETURNS TABLE (home text, alive boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO trivet.pool_home (tenant_id, backend_id, pool, host)${insert}
  ON CONFLICT DO NOTHING;
  UPDATE trivet.pool_home h SET host = p_host, claimed_at = now()
    FROM trivet.storage_host was, trivet.storage_host me
   WHERE h.tenant_id = p_tenant AND h.backend_id = p_backend AND h.pool = p_pool AND h.host <> p_host
     AND was.name = h.host AND me.name = p_host AND NOT was.named AND NOT me.named${follows}
     AND was.seen_at < now() - interval '15 seconds';
  RETURN QUERY
  SELECT h.host, s.seen_at > now() - interval '15 seconds'
             AND s.reach -> 'pools' @> jsonb_build_array(jsonb_build_object('backend', p_backend, 'name', p_pool))
    FROM trivet.pool_home h JOIN trivet.storage_host s ON s.name = h.host
   WHERE h.tenant_id = p_tenant AND h.backend_id = p_backend AND h.pool = p_pool;${end}
END $$;
`;

const FUNCTIONS = `
-- Whether a pool that is nobody's may become p_host's: not while that is being drained, and what lies in another pool only where that one
-- is. Holds that one's home where it is until the caller's transaction ends.
CREATE FUNCTION trivet.may_take_pool(p_host text, p_tenant uuid, p_backend uuid, p_pool text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  around text;
BEGIN
  SELECT parent.host INTO around
    FROM trivet.backend b JOIN trivet.pool_home parent ON parent.backend_id = b.shared_from AND parent.pool = p_pool
   WHERE b.tenant_id = p_tenant AND b.id = p_backend FOR SHARE OF parent;
  RETURN coalesce(around = p_host, true) AND NOT EXISTS (SELECT FROM trivet.storage_host h WHERE h.name = p_host AND h.draining);
END $$;
REVOKE EXECUTE ON FUNCTION trivet.may_take_pool(text, uuid, uuid, text) FROM PUBLIC;

-- Rule: pool moves. A pool, and the shares that lie in it, gets another home only when the new one lives and has its file system before
-- itself, and the old one cannot have it any more: it lives and says so, or it is silent and a person says that it is off (p_off). What is
-- unfinished there follows at once; who has a lease keeps it to its end.
CREATE FUNCTION trivet.move_pool(p_tenant uuid, p_backend uuid, p_pool text, p_to text, p_off boolean)
RETURNS TABLE (outcome text, home text, seen_at timestamptz, shares integer, operations integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was text;
  old trivet.storage_host;
  new trivet.storage_host;
  pool_there jsonb := jsonb_build_array(jsonb_build_object('backend', p_backend, 'name', p_pool));
  old_lives boolean;
  found text;
BEGIN
  SELECT h.host INTO was FROM trivet.pool_home h
   WHERE h.tenant_id = p_tenant AND h.backend_id = p_backend AND h.pool = p_pool FOR UPDATE;
  SELECT * INTO old FROM trivet.storage_host h WHERE h.name = was;
  SELECT * INTO new FROM trivet.storage_host h WHERE h.name = p_to;
  old_lives := coalesce(old.seen_at > now() - interval '15 seconds', false)
               OR EXISTS (SELECT FROM trivet.worker w WHERE w.host = was AND w.seen_at > now() - interval '15 seconds');
  found := CASE
    WHEN was IS NULL THEN 'nobody'
    WHEN new.name IS NULL THEN 'unknown'
    WHEN was = p_to THEN 'there'
    WHEN new.seen_at <= now() - interval '15 seconds' THEN 'new_silent'
    WHEN new.draining THEN 'new_draining'
    WHEN (new.reach -> 'foreign' @> pool_there) IS NOT TRUE THEN 'new_without'
    WHEN old_lives AND old.reach -> 'pools' @> pool_there THEN 'old_with'
    WHEN old_lives AND (old.reach -> 'absent' @> pool_there) IS NOT TRUE THEN 'old_unsure'
    WHEN NOT old_lives AND NOT p_off THEN 'old_silent'
    ELSE 'moved' END;
  IF found <> 'moved' THEN
    RETURN QUERY SELECT found, was, CASE WHEN found LIKE 'new%' THEN new.seen_at ELSE old.seen_at END, 0, 0;
    RETURN;
  END IF;
  UPDATE trivet.pool_home h SET host = p_to, claimed_at = now()
    FROM trivet.backend b
   WHERE b.tenant_id = h.tenant_id AND b.id = h.backend_id AND h.pool = p_pool
     AND (h.tenant_id = p_tenant AND h.backend_id = p_backend OR b.shared_from = p_backend);
  GET DIAGNOSTICS shares = ROW_COUNT;
  PERFORM trivet.route_operations();
  RETURN QUERY
  SELECT found, was, old.seen_at, shares - 1,
         (SELECT count(*)::integer FROM trivet.backend b
            JOIN trivet.operation o ON o.tenant_id = b.tenant_id AND o.backend_id = b.id AND o.pool = p_pool
           WHERE (b.tenant_id = p_tenant AND b.id = p_backend OR b.shared_from = p_backend)
             AND o.finished_at IS NULL AND o.pool IS NOT NULL);
END $$;
REVOKE EXECUTE ON FUNCTION trivet.move_pool(uuid, uuid, text, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.move_pool(uuid, uuid, text, text, boolean) TO trivet_app;

-- False: nobody knows it.
CREATE FUNCTION trivet.drain_storage_host(p_name text, p_draining boolean, p_reason text, p_by text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE trivet.storage_host h
     SET draining = p_draining, draining_reason = p_reason, draining_by = CASE WHEN p_draining THEN p_by END,
         draining_since = CASE WHEN p_draining THEN CASE WHEN h.draining THEN h.draining_since ELSE now() END END
   WHERE h.name = p_name;
  RETURN FOUND;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.drain_storage_host(text, boolean, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.drain_storage_host(text, boolean, text, text) TO trivet_app;

-- What would be without its volumes if it went: each pool with what lies in its shares.
CREATE FUNCTION trivet.pools_of_storage_host(p_name text)
RETURNS TABLE (tenant text, backend text, kind text, pool text, shares integer, volumes integer, published integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT h.tenant_id, h.backend_id, h.pool, coalesce(b.shared_from, b.id) AS owner, b.shared_from IS NOT NULL AS is_share
      FROM trivet.pool_home h JOIN trivet.backend b ON b.tenant_id = h.tenant_id AND b.id = h.backend_id
     WHERE h.host = p_name
  ), counted AS (
    SELECT here.owner, here.pool, count(*) FILTER (WHERE here.is_share) AS shares,
           sum(of_it.volumes) AS volumes, sum(of_it.published) AS published
      FROM here, LATERAL (
           SELECT count(*) AS volumes,
                  count(*) FILTER (WHERE EXISTS (SELECT FROM trivet.publication p
                                                  WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id)) AS published
             FROM trivet.volume v
            WHERE v.tenant_id = here.tenant_id AND v.backend_id = here.backend_id AND v.pool = here.pool
              AND v.state NOT IN ('binned', 'gone')) AS of_it
     GROUP BY here.owner, here.pool
  )
  SELECT t.name, b.name, b.kind, c.pool, c.shares::integer, c.volumes::integer, c.published::integer
    FROM counted c JOIN trivet.backend b ON b.id = c.owner JOIN trivet.tenant t ON t.id = b.tenant_id
   ORDER BY t.name, b.name, c.pool COLLATE "C";
$$;
REVOKE EXECUTE ON FUNCTION trivet.pools_of_storage_host(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.pools_of_storage_host(text) TO trivet_app;
`;

/** Pools of files follow their disks to another storage host, and a person drains one. Rules: docs/adr/0037. */
export class PoolMoves1797210000320 implements Migration {
  readonly locks: Migration['locks'] = { storage_host: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLUMNS + list(DRAINING) + FUNCTIONS);
    await runner.query(claim(CLAIM.now));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(claim(CLAIM.before) + list([]));
    for (const one of [
      'pools_of_storage_host(text)',
      'drain_storage_host(text, boolean, text, text)',
      'move_pool(uuid, uuid, text, text, boolean)',
      'may_take_pool(text, uuid, uuid, text)',
    ])
      await runner.query(`DROP FUNCTION trivet.${one}`);
    const columns = DRAINING.map(column => `DROP COLUMN ${column.split(' ')[0]}`);
    await runner.query(`ALTER TABLE trivet.storage_host ${columns.join(', ')}`);
  }
}
