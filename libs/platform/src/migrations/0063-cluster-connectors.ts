import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const COLUMNS = `
ALTER TABLE trivet.cluster
  -- By their names: release, connections of each endpoint, and when one was heard of last.
  ADD COLUMN connectors jsonb NOT NULL DEFAULT '{}',
  -- Certificates that were signed before are to be replaced, and are good for nothing an hour later.
  ADD COLUMN rotate_from timestamptz;
`;

const SERVING_BEFORE = `
DROP FUNCTION trivet.serving_clusters;
-- Which of these are still let in: asked for those that have connections open.
CREATE FUNCTION trivet.serving_clusters(p_tenants uuid[], p_ids uuid[]) RETURNS TABLE (id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.id
    FROM unnest(p_tenants, p_ids) AS asked(tenant_id, id)
    JOIN trivet.cluster c ON c.tenant_id = asked.tenant_id AND c.id = asked.id AND c.revoked_at IS NULL
    JOIN trivet.tenant t ON t.id = c.tenant_id AND t.state = 'active';
$$;
`;
const SERVING = `
DROP FUNCTION trivet.serving_clusters;
-- Which of these are still let in: asked for those that have connections open.
CREATE FUNCTION trivet.serving_clusters(p_tenants uuid[], p_ids uuid[]) RETURNS TABLE (id uuid, rotate_from timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.id, c.rotate_from
    FROM unnest(p_tenants, p_ids) AS asked(tenant_id, id)
    JOIN trivet.cluster c ON c.tenant_id = asked.tenant_id AND c.id = asked.id AND c.revoked_at IS NULL
    JOIN trivet.tenant t ON t.id = c.tenant_id AND t.state = 'active';
$$;
`;
const GRANTS = `
REVOKE EXECUTE ON FUNCTION trivet.serving_clusters FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.serving_clusters TO trivet_app;
`;

const FIGURES = `
-- Of all tenants, for metrics: how many clusters are heard of, are silent, and have a certificate that ends soon.
CREATE FUNCTION trivet.cluster_figures(p_silent interval, p_soon interval) RETURNS TABLE (up bigint, silent bigint, ending bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) FILTER (WHERE c.seen_at >= now() - p_silent), count(*) FILTER (WHERE c.seen_at < now() - p_silent),
         count(*) FILTER (WHERE c.certificate_until < now() + p_soon)
    FROM trivet.cluster c JOIN trivet.tenant t ON t.id = c.tenant_id AND t.state = 'active'
   WHERE c.revoked_at IS NULL;
$$;
REVOKE EXECUTE ON FUNCTION trivet.cluster_figures FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.cluster_figures TO trivet_app;
`;

/** What connectors say of themselves, and certificates that a person wants replaced. Rules: docs/adr/0045. */
export class ClusterConnectors1797210000370 implements Migration {
  readonly locks: Migration['locks'] = { cluster: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLUMNS + SERVING + GRANTS + FIGURES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.cluster_figures; ${SERVING_BEFORE} ${GRANTS}
      ALTER TABLE trivet.cluster DROP COLUMN connectors, DROP COLUMN rotate_from`);
  }
}
