import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const MADE = 'trivet.pool_thin_ratio, trivet.backend_conditions, trivet.pool_conditions';

/**
 * What is known of a backend, and since when: for one state of health wherever it is shown. And what a pool promises, which
 * is the pool's own, also where tenants share it. The functions follow health_of_backends and health_of_pools, which stay for
 * gateways of the release before that still run.
 */
const EVIDENCE = `
ALTER TABLE trivet.backend_circuit
  -- Since when it is open.
  ADD COLUMN opened_at timestamptz,
  -- It answers and cannot be used: our keys are refused, or a test failed. Cleared by the next use or test that goes well.
  ADD COLUMN fault text,
  ADD COLUMN fault_at timestamptz,
  -- By a worker, because nobody else had heard from it.
  ADD COLUMN asked_at timestamptz;

-- Of the pool that a share is a part of; no row: nobody has looked at it yet.
CREATE FUNCTION trivet.pool_thin_ratio(p_backend uuid, p_pool text) RETURNS TABLE (ratio double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT thin_ratio FROM trivet.pool WHERE backend_id = p_backend AND name = p_pool;
$$;

-- Each share had a ratio of its own until now: nobody's room gets smaller by the change.
UPDATE trivet.pool p SET thin_ratio = shares.ratio
  FROM (SELECT b.shared_from, s.name, max(s.thin_ratio) AS ratio
          FROM trivet.pool s JOIN trivet.backend b ON b.tenant_id = s.tenant_id AND b.id = s.backend_id
         WHERE b.shared_from IS NOT NULL GROUP BY b.shared_from, s.name) AS shares
 WHERE p.backend_id = shares.shared_from AND p.name = shares.name AND p.thin_ratio < shares.ratio;

CREATE FUNCTION trivet.backend_conditions(p_tenant uuid)
RETURNS TABLE (tenant text, name text, kind text, state text, is_block boolean, circuit_open boolean, reason text,
               opened_at timestamptz, answered_at timestamptz, fault text, fault_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, b.kind, b.effective_state, b.config ? 'pools',
         CASE WHEN c.tenant_id IS NOT NULL THEN c.open_until IS NOT NULL END,
         CASE WHEN b.shared_from IS NULL THEN coalesce(c.detail, c.reason) ELSE c.reason END, c.opened_at, c.probed_at, c.fault,
         c.fault_at
    FROM trivet.backend b
    JOIN trivet.tenant t ON t.id = b.tenant_id
    LEFT JOIN trivet.backend_circuit c ON c.tenant_id = b.tenant_id AND c.backend_id = b.id
   WHERE p_tenant IS NULL OR b.tenant_id = p_tenant
   ORDER BY t.name, b.name;
$$;

-- growth: bytes a second over the last week, of half a day at least; NULL: too little is known.
CREATE FUNCTION trivet.pool_conditions(p_tenant uuid)
RETURNS TABLE (tenant text, backend text, pool text, state text, reason text, total bigint, used bigint, trend json,
               age double precision, growth double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, p.name, p.state, p.reason, p.total_bytes, p.used_bytes, week.trend,
         extract(epoch FROM now() - p.checked_at)::double precision, week.growth
    FROM trivet.pool p
    JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    JOIN trivet.tenant t ON t.id = p.tenant_id
   CROSS JOIN LATERAL (
         SELECT coalesce(json_agg(json_build_object('at', s.at, 'used', s.used_bytes::text) ORDER BY s.at), '[]') AS trend,
                CASE WHEN max(s.at) - min(s.at) >= interval '12 hours'
                     THEN regr_slope(s.used_bytes, extract(epoch FROM s.at)) END AS growth
           FROM trivet.pool_sample s
          WHERE s.tenant_id = p.tenant_id AND s.backend_id = p.backend_id AND s.pool = p.name
            AND s.at > now() - interval '7 days') AS week
   WHERE p_tenant IS NULL OR p.tenant_id = p_tenant
   ORDER BY t.name, b.name, p.position;
$$;
REVOKE EXECUTE ON FUNCTION ${MADE} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${MADE} TO trivet_app;
`;

export class Evidence1796428800000 implements Migration {
  readonly locks: Migration['locks'] = {
    backend_circuit: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(EVIDENCE);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION ${MADE}`);
    await runner.query(
      'ALTER TABLE trivet.backend_circuit DROP COLUMN opened_at, DROP COLUMN fault, DROP COLUMN fault_at, DROP COLUMN asked_at',
    );
  }
}
