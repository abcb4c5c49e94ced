import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLES = `
-- A cluster that was enrolled: it comes in by a certificate that the appliance's authority signed, which holds tenant and id.
CREATE TABLE trivet.cluster (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  name text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  -- Names of the tenant's endpoints that it may ask for. NULL: any.
  endpoints text[],
  -- Of its connector.
  release text NOT NULL,
  -- Of the certificate that was signed last.
  certificate_serial text NOT NULL,
  certificate_until timestamptz NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX cluster_live ON trivet.cluster (tenant_id, name) WHERE revoked_at IS NULL;

-- Lets one cluster in, once. A used one stays until it ends, so that a second use is told from a guess.
CREATE TABLE trivet.cluster_join_token (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  id uuid NOT NULL,
  cluster_name text NOT NULL CHECK (cluster_name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  endpoints text[],
  token_hash bytea NOT NULL CHECK (octet_length(token_hash) = 32),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, id)
);
CREATE INDEX cluster_join_token_by_hash ON trivet.cluster_join_token (token_hash);
`;

const FUNCTIONS = `
CREATE FUNCTION trivet.find_join_token(p_hash bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, tenant_state text, id uuid, cluster_name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.name, t.state, j.id, j.cluster_name
    FROM trivet.cluster_join_token j JOIN trivet.tenant t ON t.id = j.tenant_id
   WHERE j.token_hash = p_hash;
$$;

-- Which of these are still let in: asked for those that have connections open.
CREATE FUNCTION trivet.serving_clusters(p_tenants uuid[], p_ids uuid[]) RETURNS TABLE (id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.id
    FROM unnest(p_tenants, p_ids) AS asked(tenant_id, id)
    JOIN trivet.cluster c ON c.tenant_id = asked.tenant_id AND c.id = asked.id AND c.revoked_at IS NULL
    JOIN trivet.tenant t ON t.id = c.tenant_id AND t.state = 'active';
$$;

REVOKE EXECUTE ON FUNCTION trivet.find_join_token, trivet.serving_clusters FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_join_token, trivet.serving_clusters TO trivet_app;

-- Rule: told changes.
CREATE TRIGGER tell_changed AFTER DELETE OR UPDATE OF revoked_at ON trivet.cluster
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.tell_changed('doors');
`;

/** Kubernetes clusters that carry the sockets of a tenant over mutual TLS. Rules: docs/adr/0034. */
export class Clusters1797210000300 implements Migration {
  readonly locks: Migration['locks'] = {
    // For the keys that point at it.
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLES + FUNCTIONS + rowSecurity(['cluster', 'cluster_join_token']));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.find_join_token, trivet.serving_clusters;
      DROP TABLE trivet.cluster_join_token, trivet.cluster`);
    // The authority of clusters that are no more.
    await runner.query(`DELETE FROM trivet.secret WHERE owner_table = 'authority'`);
  }
}
