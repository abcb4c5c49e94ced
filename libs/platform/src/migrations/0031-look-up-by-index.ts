import type { QueryRunner } from 'typeorm';
import { LOOK_UP as BEFORE } from '#platform/migrations/0022-allocated-bytes';
import type { Migration } from '#platform/migrations/locks';

const FOUND = `
    SELECT v.id, v.name, v.state, v.size_bytes, v.allocated_bytes, v.description,
           EXISTS (SELECT FROM trivet.publication p WHERE p.tenant_id = p_tenant AND p.volume_id = v.id),
           v.volume_group_id, v.base_snapshot_id, v.parent_volume_id, v.clone_of, v.pool, v.folder, v.thick,
           v.destroy_on_delete, v.config, v.active_operation, v.condition, v.created_at`;

/** As migration 0022 has it, but one look into an index for each that is asked for: joined, all volumes of the tenant were read. */
const found = (asked: string, which: string): string => `
    RETURN QUERY
    SELECT found.* FROM ${asked}
     CROSS JOIN LATERAL (${FOUND}
      FROM trivet.volume v
     WHERE v.tenant_id = p_tenant AND v.backend_id = p_backend AND ${which} AND v.state NOT IN ('binned', 'gone') LIMIT 1) AS found;`;

const LOOK_UP = `
-- The path that drivers repeat: one statement sets the tenant and reads, for all who ask at the same moment.
CREATE OR REPLACE FUNCTION trivet.look_up_volumes(p_tenant uuid, p_backend uuid, p_ids uuid[], p_names text[])
RETURNS TABLE (id uuid, name text, state text, size_bytes bigint, allocated_bytes bigint, description text, published boolean,
               volume_group_id uuid, base_snapshot_id uuid, parent_volume_id uuid, clone_of text, pool text, folder text,
               thick boolean, destroy_on_delete boolean, config jsonb, active_operation uuid, condition jsonb,
               created_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  IF cardinality(p_ids) > 0 THEN${found('unnest(p_ids) AS asked (id)', 'v.id = asked.id')}
  END IF;
  IF cardinality(p_names) > 0 THEN${found('unnest(p_names) AS asked (name)', "v.name = asked.name AND v.state <> 'gone'")}
  END IF;
END $$;
`;

export class LookUpByIndex1797210000050 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(LOOK_UP);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(BEFORE.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
  }
}
