import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const COLUMNS = `
-- lacks: what the home says that it lacks to serve the pool (cluster, link); NULL: nothing. taken_from, taken_at, taken_why: how the home
-- came to have it. unserved_since: since when nobody serves it, while it is taken over.
ALTER TABLE trivet.pool_home
  ADD COLUMN lacks text,
  ADD COLUMN taken_from text,
  ADD COLUMN taken_at timestamptz,
  ADD COLUMN taken_why text,
  ADD COLUMN unserved_since timestamptz;
`;

/** What is said of takeovers, in functions that were there before. */
const KEEP = {
  before: { columns: '', lacks: '', renewed: '', with: '', taken: '', noted: '', values: '' },
  now: {
    columns: ', taken_why text',
    lacks: `  UPDATE trivet.pool_home h SET lacks = p.lacks
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, lacks text)
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.host = p_host AND h.lacks IS DISTINCT FROM p.lacks;
`,
    renewed: `,
         unserved_since = CASE WHEN h.to_fence = '[]' THEN NULL ELSE h.unserved_since END`,
    with: 'WITH taken AS (',
    taken: `,
         lacks = NULL, taken_from = h.host, taken_at = now(),
         taken_why = CASE WHEN was.draining THEN 'drained'
                          WHEN h.lacks IS NOT NULL THEN h.lacks
                          WHEN h.lease_until = '-infinity' THEN 'handed_over'
                          WHEN h.address = p.address THEN 'renamed'
                          ELSE 'silent' END,
         -- In order there is nobody to shut out, unless the one before had somebody.
         unserved_since = CASE WHEN h.lease_until = '-infinity' AND h.to_fence = '[]' THEN NULL
                               ELSE coalesce(h.unserved_since, CASE WHEN h.lease_until IS NULL THEN was.seen_at ELSE h.lease_until END) END`,
    noted: `
   RETURNING h.tenant_id, h.backend_id, h.pool, h.taken_from, h.taken_why, h.to_fence)
  INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_id, subject_name, before, after, reason)
  SELECT t.id, t.name, 'system', 'exports', 'pool.take_over', 'pool', taken.backend_id::text, taken.pool,
         jsonb_build_object('backend', b.name, 'host', taken.taken_from),
         jsonb_build_object('backend', b.name, 'host', p_host, 'why', taken.taken_why, 'shutsOut', taken.to_fence),
         'storage host ' || taken.taken_from || CASE taken.taken_why
           WHEN 'drained' THEN ' is drained'
           WHEN 'cluster' THEN ' did not reach the cluster'
           WHEN 'link' THEN ' had no link to initiators'
           WHEN 'handed_over' THEN ' ended its worker in order'
           WHEN 'renamed' THEN ' has another name'
           ELSE ' said nothing for longer than its lease' END
    FROM taken JOIN trivet.tenant t ON t.id = taken.tenant_id
    JOIN trivet.backend b ON b.tenant_id = taken.tenant_id AND b.id = taken.backend_id`,
    values: `,
         CASE WHEN h.host = p_host AND h.taken_at = now() THEN h.taken_why END`,
  },
};

const keep = (v: (typeof KEEP)['now']): string => `
DROP FUNCTION trivet.keep_exports(text, jsonb, integer);
CREATE FUNCTION trivet.keep_exports(p_host text, p_pools jsonb, p_term_ms integer)
RETURNS TABLE (tenant_id uuid, backend_id uuid, pool text, home text, fence bigint, renewed boolean, drains boolean, address text,
               to_fence jsonb, obstacle text${v.columns})
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
${v.lacks}  UPDATE trivet.pool_home h SET cluster = true, address = coalesce(h.address, p.address), lease_until = now() + term${v.renewed}
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text, able boolean)
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.host = p_host
     AND (h.address = p.address) IS NOT FALSE
     AND (p.able AND NOT is_draining OR NOT EXISTS (
           SELECT FROM trivet.storage_host o
            WHERE o.name <> p_host AND NOT o.draining AND o.takes_at > now() - interval '3 seconds'
              AND o.takes @> jsonb_build_array(jsonb_build_object('backend', p.backend, 'name', p.name))));
  ${v.with}UPDATE trivet.pool_home h
     SET host = p_host, address = p.address, fence = h.fence + 1, claimed_at = now(), lease_until = now() + term,
         to_fence = CASE WHEN h.lease_until = '-infinity' THEN h.to_fence
                         ELSE h.to_fence || jsonb_build_object('host', h.host, 'address', h.address) END${v.taken}
    FROM jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text, takes boolean),
         trivet.storage_host was, trivet.storage_host me
   WHERE h.backend_id = p.backend AND h.pool = p.name AND h.cluster AND h.host <> p_host
     AND p.takes AND knows AND NOT is_draining AND p.address IS NOT NULL AND was.name = h.host AND me.name = p_host
     AND (h.lease_until < now() OR h.lease_until IS NULL AND was.seen_at < now() - silence)
     AND (h.lease_until = '-infinity' OR h.address <> p.address
          -- The same machine under another name, of those that were given none.
          OR h.address = p.address AND NOT was.named AND NOT me.named AND was.seen_at < now() - silence)${v.noted};
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
         END${v.values}
    FROM trivet.pool_home h
    JOIN jsonb_to_recordset(p_pools) AS p (backend uuid, name text, address text) ON h.backend_id = p.backend AND h.pool = p.name
    JOIN trivet.storage_host was ON was.name = h.host;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.keep_exports(text, jsonb, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.keep_exports(text, jsonb, integer) TO trivet_engine;
`;

const released = (since: string): string => `
CREATE OR REPLACE FUNCTION trivet.release_exports(p_host text, p_backend uuid, p_pool text, p_fence bigint, p_in_order boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE trivet.pool_home h SET lease_until = CASE WHEN p_in_order THEN '-infinity'::timestamptz ELSE now() - interval '1 ms' END${since}
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence;
$$;
`;

const fenced = (since: string): string => `
CREATE OR REPLACE FUNCTION trivet.exports_fenced(p_host text, p_backend uuid, p_pool text, p_fence bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE trivet.pool_home h SET to_fence = '[]'${since}
   WHERE h.backend_id = p_backend AND h.pool = p_pool AND h.host = p_host AND h.fence = p_fence;
  RETURN FOUND;
END $$;
`;

const HOST_POOLS = {
  before: { columns: '', here: '', counted: '', values: '' },
  now: {
    columns: ', taken_from text, taken_at timestamptz, taken_why text, lacks text',
    here: ', h.taken_from, h.taken_at, h.taken_why, h.lacks',
    // One: pools of clusters have no shares.
    counted: `,
           max(here.taken_from) AS taken_from, max(here.taken_at) AS taken_at, max(here.taken_why) AS taken_why, max(here.lacks) AS lacks`,
    values: ', c.taken_from, c.taken_at, c.taken_why, c.lacks',
  },
};

const hostPools = (v: (typeof HOST_POOLS)['now']): string => `
DROP FUNCTION trivet.pools_of_storage_host(text);
CREATE FUNCTION trivet.pools_of_storage_host(p_name text)
RETURNS TABLE (tenant text, backend text, kind text, pool text, shares integer, volumes integer, published integer${v.columns})
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH here AS MATERIALIZED (
    SELECT h.tenant_id, h.backend_id, h.pool, coalesce(b.shared_from, b.id) AS owner, b.shared_from IS NOT NULL AS is_share${v.here}
      FROM trivet.pool_home h JOIN trivet.backend b ON b.tenant_id = h.tenant_id AND b.id = h.backend_id
     WHERE h.host = p_name
  ), counted AS (
    SELECT here.owner, here.pool, count(*) FILTER (WHERE here.is_share) AS shares,
           sum(of_it.volumes) AS volumes, sum(of_it.published) AS published${v.counted}
      FROM here, LATERAL (
           SELECT count(*) AS volumes,
                  count(*) FILTER (WHERE EXISTS (SELECT FROM trivet.publication p
                                                  WHERE p.tenant_id = v.tenant_id AND p.volume_id = v.id)) AS published
             FROM trivet.volume v
            WHERE v.tenant_id = here.tenant_id AND v.backend_id = here.backend_id AND v.pool = here.pool
              AND v.state NOT IN ('binned', 'gone')) AS of_it
     GROUP BY here.owner, here.pool
  )
  SELECT t.name, b.name, b.kind, c.pool, c.shares::integer, c.volumes::integer, c.published::integer${v.values}
    FROM counted c JOIN trivet.backend b ON b.id = c.owner JOIN trivet.tenant t ON t.id = b.tenant_id
   ORDER BY t.name, b.name, c.pool COLLATE "C";
$$;
REVOKE EXECUTE ON FUNCTION trivet.pools_of_storage_host(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.pools_of_storage_host(text) TO trivet_app;
`;

/** Whose pool was taken over, when, from whom and why. */
export class TakeoversTold1797210000360 implements Migration {
  readonly locks: Migration['locks'] = {
    pool_home: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLUMNS);
    for (const one of [keep(KEEP.now), released(', unserved_since = now()'), fenced(', unserved_since = NULL')])
      await runner.query(one);
    await runner.query(hostPools(HOST_POOLS.now));
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const one of [keep(KEEP.before), released(''), fenced(''), hostPools(HOST_POOLS.before)])
      await runner.query(one);
    await runner.query(
      'ALTER TABLE trivet.pool_home DROP COLUMN lacks, DROP COLUMN taken_from, DROP COLUMN taken_at, DROP COLUMN taken_why, DROP COLUMN unserved_since',
    );
  }
}
