import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** What it returns, and how; `more`: of what came later. */
export const whatIsDue = (more = ''): string => ` RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN array_remove(ARRAY[
    CASE WHEN EXISTS (SELECT FROM trivet.operation o
                       WHERE o.finished_at IS NULL
                         AND (o.state = 'pending' AND o.next_run_at <= now() OR o.state = 'running' AND o.lease_until <= now()))
         THEN 'due-operations' END,
    CASE WHEN EXISTS (SELECT FROM trivet.backend_circuit c WHERE c.open_until IS NOT NULL) THEN 'circuit-probes' END,
    CASE WHEN EXISTS (SELECT FROM trivet.tenant t
                       WHERE t.state = 'active'
                         AND (EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.next_run_at <= now())
                           OR EXISTS (SELECT FROM trivet.volume_protection p WHERE p.tenant_id = t.id AND p.prune_at <= now())
                           OR EXISTS (SELECT FROM trivet.finding f WHERE f.tenant_id = t.id AND f.kind = 'protection_paused')))
         THEN 'protection' END,
    CASE WHEN EXISTS (SELECT FROM trivet.tenant t WHERE t.state = 'draining' AND t.kind = 'tenant') THEN 'tenant-drain' END,
    CASE WHEN EXISTS (SELECT FROM trivet.snapshot s WHERE s.cut IS NOT NULL AND s.index_state = 'pending')
         THEN 'change-index' END,
    CASE WHEN EXISTS (SELECT FROM trivet.snapshot s WHERE s.hidden AND s.state = 'ready') THEN 'hidden-snapshots' END,
    CASE WHEN EXISTS (SELECT FROM trivet.snapshot s WHERE s.state = 'gone' AND s.cut IS NOT NULL AND s.image_gone_at IS NULL)
         THEN 'kept-images' END,
    CASE WHEN EXISTS (SELECT FROM trivet.snapshot_session) THEN 'snapshot-sessions' END,
    CASE WHEN EXISTS (SELECT FROM trivet.tenant t
                       WHERE EXISTS (SELECT FROM trivet.volume v
                                      WHERE v.tenant_id = t.id AND v.state = 'binned' AND v.binned_until <= now()))
           OR EXISTS (SELECT FROM trivet.pool p WHERE p.used_bytes > p.total_bytes * 0.95)
         THEN 'recycle-bin' END,
    CASE WHEN EXISTS (SELECT FROM trivet.tenant_quota q WHERE q.key = 'bucket_bytes')
           OR EXISTS (SELECT FROM trivet.backend b WHERE b.told_limit IS NOT NULL)
         THEN 'bucket-usage' END${more}], NULL);
END $$;`;

const FUNCTIONS = `
-- Names of periodic tasks of workers for which there is something to do. Asked all the time, so that each of them need not ask:
-- a look into an index for each tenant at most. A task that is woken looks again by itself.
CREATE FUNCTION trivet.what_is_due()${whatIsDue()}
REVOKE EXECUTE ON FUNCTION trivet.what_is_due() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.what_is_due() TO trivet_engine;

-- Block backends of all tenants, the appliance's own first, since shares lie in them: what the background must know before it
-- enters a tenant. Kinds of object store have no pools.
CREATE FUNCTION trivet.block_backends() RETURNS TABLE (tenant_id uuid, backend_id uuid, kind text, config jsonb, shares boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT b.tenant_id, b.id, b.kind, b.config, t.kind = 'appliance'
    FROM trivet.backend b
    JOIN trivet.tenant t ON t.id = b.tenant_id
   WHERE b.config ? 'pools' ORDER BY t.kind = 'appliance' DESC, b.tenant_id, b.id;
$$;
REVOKE EXECUTE ON FUNCTION trivet.block_backends() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.block_backends() TO trivet_engine;
`;

/** What the workers ask for in one statement instead of one a task. */
export class WhatIsDue1797210000110 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FUNCTIONS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.block_backends()');
    await runner.query('DROP FUNCTION trivet.what_is_due()');
  }
}
