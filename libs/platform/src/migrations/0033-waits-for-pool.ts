import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const FUNCTION = `
-- Rule: pool circuit. An operation that one pool did not answer waits until a worker sees that pool up again, and holds up nothing
-- that is on another pool of the backend. Whether no worker has looked for a minute nobody knows: then it is tried. Other operations
-- on a pool that is down have one try, which costs no call, and wait from then on.
CREATE FUNCTION trivet.waits_for_pool(p_tenant uuid, p_backend uuid, p_error jsonb) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT p_error ->> 'kind' IN ('unavailable', 'timeout')
     AND EXISTS (SELECT FROM trivet.pool
                  WHERE tenant_id = p_tenant AND backend_id = p_backend AND 'pool ' || name = p_error ->> 'resource'
                    AND state = 'down' AND checked_at > now() - interval '1 minute');
$$;
REVOKE EXECUTE ON FUNCTION trivet.waits_for_pool(uuid, uuid, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.waits_for_pool(uuid, uuid, jsonb) TO trivet_app, trivet_engine;
`;

/** One down pool does not hold up the others of its backend. */
export class WaitsForPool1797210000070 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.waits_for_pool(uuid, uuid, jsonb)');
  }
}
