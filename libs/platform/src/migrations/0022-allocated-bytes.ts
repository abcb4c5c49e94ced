import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const FOUND = `
    SELECT v.id, v.name, v.state, v.size_bytes, v.allocated_bytes, v.description,
           EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = p_tenant AND p.volume_id = v.id),
           v.volume_group_id, v.base_snapshot_id, v.parent_volume_id, v.clone_of, v.pool, v.folder, v.thick,
           v.destroy_on_delete, v.config, v.active_operation, v.condition, v.created_at`;

export const LOOK_UP = `-- The path that drivers repeat: one statement sets the tenant and reads, for all who ask at the same moment.
CREATE FUNCTION trivet.look_up_volumes(p_tenant uuid, p_backend uuid, p_ids uuid[], p_names text[])
RETURNS TABLE (id uuid, name text, state text, size_bytes bigint, allocated_bytes bigint, description text, published boolean,
               volume_group_id uuid, base_snapshot_id uuid, parent_volume_id uuid, clone_of text, pool text, folder text,
               thick boolean, destroy_on_delete boolean, config jsonb, active_operation uuid, condition jsonb,
               created_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  IF cardinality(p_ids) > 0 THEN
    RETURN QUERY${FOUND}
      FROM unnest(p_ids) AS asked (id)
      JOIN trivet.volume v ON v.tenant_id = p_tenant AND v.id = asked.id
     WHERE v.backend_id = p_backend AND v.state NOT IN ('binned', 'gone');
  END IF;
  IF cardinality(p_names) > 0 THEN
    RETURN QUERY${FOUND}
      FROM unnest(p_names) AS asked (name)
      JOIN trivet.volume v ON v.tenant_id = p_tenant AND v.backend_id = p_backend AND v.name = asked.name
     WHERE v.state NOT IN ('binned', 'gone');
  END IF;
END $$;
`;

/** Beside find_volumes, which stays for gateways of the release before. */
const ALLOCATED = `
-- What its image had of its pool when the audit last looked.
ALTER TABLE trivet.volume ADD COLUMN allocated_bytes bigint NOT NULL DEFAULT 0;

${LOOK_UP}REVOKE EXECUTE ON FUNCTION trivet.look_up_volumes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.look_up_volumes TO trivet_app;
`;

export class AllocatedBytes1796860800000 implements Migration {
  readonly locks: Migration['locks'] = {
    volume: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ALLOCATED);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.look_up_volumes');
    await runner.query('ALTER TABLE trivet.volume DROP COLUMN allocated_bytes');
  }
}
