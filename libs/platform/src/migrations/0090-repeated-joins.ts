import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const find = (joined: string, columns: string): string => `
DROP FUNCTION trivet.find_join_token(bytea);
CREATE FUNCTION trivet.find_join_token(p_hash bytea)
RETURNS TABLE (tenant_id uuid, tenant_name text, tenant_state text, id uuid, cluster_name text${joined})
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, t.name, t.state, j.id, j.cluster_name${columns}
    FROM trivet.cluster_join_token j JOIN trivet.tenant t ON t.id = j.tenant_id
   WHERE j.token_hash = p_hash;
$$;
REVOKE EXECUTE ON FUNCTION trivet.find_join_token FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.find_join_token TO trivet_app;
`;

/** A used join token knows whom it let in, so that the one who did not hear the answer may ask again. */
export class RepeatedJoins1797210001200 implements Migration {
  readonly locks: Migration['locks'] = { cluster_join_token: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    // SHA-256 of the public key's SPKI in DER.
    await runner.query(`ALTER TABLE trivet.cluster_join_token
      ADD COLUMN joined_key bytea, ADD COLUMN joined_cluster uuid`);
    await runner.query(find(', joined_key bytea, joined_cluster uuid', ', j.joined_key, j.joined_cluster'));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(find('', ''));
    await runner.query('ALTER TABLE trivet.cluster_join_token DROP COLUMN joined_key, DROP COLUMN joined_cluster');
  }
}
