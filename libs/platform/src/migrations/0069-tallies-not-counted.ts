import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const COLUMN = `
-- When its comparison failed last. It ends there: an open one would be told each change for as long as it fails.
ALTER TABLE trivet.tally_pass ADD COLUMN failed_at timestamptz;
`;

/** @param last when it was compared, or tried to be, of the pass P */
const next = (last: string): string => `
-- What is to be compared next: what is open, and then what had no turn for the longest time.
CREATE OR REPLACE FUNCTION trivet.tallies_to_compare(p_again_ms float8, p_most integer) RETURNS TABLE (tenant_id uuid, kind text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, k.kind
    FROM trivet.tenant t CROSS JOIN unnest('{volume,snapshot,bucket,binned,registered,change_step}'::text[]) AS k (kind)
    LEFT JOIN trivet.tally_pass p ON p.tenant_id = t.id AND p.kind = k.kind
   WHERE p.tenant_id IS NULL OR p.open OR ${last} <= now() - p_again_ms * interval '1 ms'
   ORDER BY coalesce(p.open, false) DESC, ${last} NULLS FIRST, t.id, k.kind LIMIT p_most;
$$;`;

const FAILED = `
-- It has had its turn, and begins anew at its next one.
CREATE FUNCTION trivet.tally_failed(p_tenant uuid, p_kind text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO trivet.tally_pass AS p (tenant_id, kind, open, made_in, failed_at)
  SELECT t.id, p_kind, false, '', now() FROM trivet.tenant t WHERE t.id = p_tenant
  ON CONFLICT (tenant_id, kind) DO UPDATE SET open = false, settled = NULL, failed_at = now();
$$;
REVOKE EXECUTE ON FUNCTION trivet.tally_failed(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.tally_failed(uuid, text) TO trivet_engine;
`;

/** A tally that cannot be counted stands behind those that were not tried for longer, and not first in each run. */
export class TalliesNotCounted1797210000402 implements Migration {
  readonly locks: Migration['locks'] = {
    tally_pass: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLUMN);
    await runner.query(next('greatest(p.ended_at, p.failed_at)'));
    await runner.query(FAILED);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.tally_failed(uuid, text)');
    await runner.query(next('p.ended_at'));
    await runner.query('ALTER TABLE trivet.tally_pass DROP COLUMN failed_at');
  }
}
