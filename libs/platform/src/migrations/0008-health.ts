import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const MADE = 'trivet.health_of_backends, trivet.health_of_pools';

/**
 * What the overview needs to say of a backend what its own page says; of one tenant, or of all. They follow
 * overview_backends and overview_pools, which stay for gateways of the release before that still run.
 */
const HEALTH = `
-- circuit_open NULL: nobody has heard from it.
CREATE FUNCTION trivet.health_of_backends(p_tenant uuid)
RETURNS TABLE (tenant text, name text, kind text, state text, is_block boolean, circuit_open boolean, reason text,
               answered_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, b.kind, b.effective_state, b.config ? 'pools',
         CASE WHEN c.tenant_id IS NOT NULL THEN c.open_until IS NOT NULL END, c.reason, c.probed_at
    FROM trivet.backend b
    JOIN trivet.tenant t ON t.id = b.tenant_id
    LEFT JOIN trivet.backend_circuit c ON c.tenant_id = b.tenant_id AND c.backend_id = b.id
   WHERE p_tenant IS NULL OR b.tenant_id = p_tenant
   ORDER BY t.name, b.name;
$$;
CREATE FUNCTION trivet.health_of_pools(p_tenant uuid)
RETURNS TABLE (tenant text, backend text, pool text, state text, reason text, total bigint, used bigint, trend json,
               age double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, p.name, p.state, p.reason, p.total_bytes, p.used_bytes,
         (SELECT coalesce(json_agg(json_build_object('at', s.at, 'used', s.used_bytes::text) ORDER BY s.at), '[]')
            FROM trivet.pool_sample s
           WHERE s.tenant_id = p.tenant_id AND s.backend_id = p.backend_id AND s.pool = p.name
             AND s.at > now() - interval '7 days'),
         extract(epoch FROM now() - p.checked_at)::double precision
    FROM trivet.pool p
    JOIN trivet.backend b ON b.tenant_id = p.tenant_id AND b.id = p.backend_id
    JOIN trivet.tenant t ON t.id = p.tenant_id
   WHERE p_tenant IS NULL OR p.tenant_id = p_tenant
   ORDER BY t.name, b.name, p.position;
$$;
REVOKE EXECUTE ON FUNCTION ${MADE} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${MADE} TO trivet_app;
`;

export class Health1795651260000 implements Migration {
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(HEALTH);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION ${MADE}`);
  }
}
