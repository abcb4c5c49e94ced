import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * What was there before migration 0042: bytes of steps are counted, and volumes queued of which a step leads nowhere, is not finished,
 * or is new. Nobody waits for it, and it reads each table once: ten million steps in some tens of seconds.
 */
const FILL = [
  'SELECT FROM trivet.tenant t, trivet.recount(t.id)',
  `INSERT INTO trivet.change_upkeep (tenant_id, volume_id)
   SELECT DISTINCT c.tenant_id, c.volume_id FROM trivet.change_step c
    WHERE c.state = 'building' OR c.created_at > now() - interval '1 day'
       OR NOT EXISTS (SELECT FROM trivet.snapshot s
                       WHERE s.tenant_id = c.tenant_id AND s.volume_id = c.volume_id AND s.cut = c.to_cut)
       OR c.kind = 'delta'
      AND NOT EXISTS (SELECT FROM trivet.snapshot s
                       WHERE s.tenant_id = c.tenant_id AND s.volume_id = c.volume_id AND s.cut = c.from_cut)`,
];

const DUE = `
-- Tenants in whose change index there is something to do: a chain to be looked at, a deleted snapshot whose time as a base is
-- over, or a pool of which the index stores more than its share. A look into an index for each.
CREATE FUNCTION trivet.change_upkeep_due(p_retention_ms float8, p_share float8) RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id FROM trivet.tenant t
   WHERE EXISTS (SELECT FROM trivet.change_upkeep u WHERE u.tenant_id = t.id AND u.due_at <= now())
      OR EXISTS (SELECT FROM trivet.snapshot s
                  WHERE s.tenant_id = t.id AND s.state = 'gone' AND s.cut IS NOT NULL AND s.index_state <> 'pending'
                    AND s.active_operation IS NULL AND s.updated_at < now() - p_retention_ms * interval '1 ms')
      OR EXISTS (SELECT FROM trivet.pool p
                  WHERE p.tenant_id = t.id AND p.total_bytes > 0
                    AND p.total_bytes * p_share < (SELECT sum(y.bytes) FROM trivet.tally y
                                                    WHERE y.tenant_id = t.id AND y.kind = 'change_step'
                                                      AND y.backend_id = p.backend_id AND y.pool = p.name))
   ORDER BY t.id;
$$;
REVOKE EXECUTE ON FUNCTION trivet.change_upkeep_due(float8, float8) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.change_upkeep_due(float8, float8) TO trivet_engine;
`;

export class ChangeUpkeepRead1797210000180 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...FILL, DUE]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.change_upkeep_due(float8, float8)');
  }
}
