import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const findSession = (of: 'users' | 'users and clusters'): string => `
CREATE OR REPLACE FUNCTION trivet.find_snapshot_session(p_hash bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, session_id uuid, driver text, expires_at timestamptz,
               remaining_ms double precision, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.tenant_id, t.name, s.id, s.driver, s.expires_at,
         extract(epoch FROM s.expires_at - now())::double precision * 1000, t.state
    FROM trivet.snapshot_session s
    JOIN trivet.tenant t ON t.id = s.tenant_id
    LEFT JOIN trivet.tenant_user u ON u.tenant_id = s.tenant_id AND u.id = s.created_by${
      of === 'users'
        ? ''
        : `
    LEFT JOIN trivet.cluster c ON c.tenant_id = s.tenant_id AND c.id = s.cluster_id`
    }
   WHERE s.token_hash = p_hash AND s.state = 'ready' AND s.expires_at > now()
     AND (s.created_by IS NULL OR u.state = 'active')${
       of === 'users'
         ? ''
         : `
     AND (s.cluster_id IS NULL OR (c.id IS NOT NULL AND c.revoked_at IS NULL))`
     };
$$;
`;

/** Snapshot sessions that the session manager of a cluster opens: they end with the cluster's revocation. Rules: docs/adr/0046. */
export class SessionsOfClusters1797210000380 implements Migration {
  readonly locks: Migration['locks'] = {
    snapshot_session: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- The cluster that opened it; then created_by is NULL. No key: what names a cluster that is gone is worth nothing.
ALTER TABLE trivet.snapshot_session ADD COLUMN cluster_id uuid;
${findSession('users and clusters')}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DELETE FROM trivet.snapshot_session WHERE cluster_id IS NOT NULL;
${findSession('users')}
ALTER TABLE trivet.snapshot_session DROP COLUMN cluster_id`);
  }
}
