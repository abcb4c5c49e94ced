import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const FUNCTION = `
-- Rule: host fences grow. A host that holds a higher fence than was ever drawn here has seen a database that is newer than this
-- one: this one was restored, or its primary was lost with its last transactions. Every change of what is on that host would be
-- refused until as many claims have come. Gives whether it was so. Numbers that are drawn meanwhile are far below the margin.
CREATE FUNCTION trivet.host_fence_seen(p_seen bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('trivet/host_fence', 0));
  -- Beyond half of all numbers it is nobody's fence.
  IF p_seen <= (SELECT last_value FROM trivet.host_fence) OR p_seen > 4611686018427387903 THEN RETURN false; END IF;
  PERFORM setval('trivet.host_fence', p_seen + 1000);
  RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.host_fence_seen(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.host_fence_seen(bigint) TO trivet_engine;
`;

/** A restored database goes on by itself. */
export class HostFenceSeen1797210000000 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.host_fence_seen(bigint)');
  }
}
