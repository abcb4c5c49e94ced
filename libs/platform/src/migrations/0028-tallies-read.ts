import type { QueryRunner } from 'typeorm';
import { PROMISED_TO_OTHERS, QUOTA_OF_GROWING } from '#platform/migrations/0024-growing-volumes';
import type { Migration } from '#platform/migrations/locks';

/** Nobody waits for a stripe that it holds, and it reads each table once: ten million snapshots in some ten seconds. */
const FILL = 'SELECT FROM trivet.tenant t, trivet.recount(t.id)';

/** Who reads what a tenant has pays for stripes, and for what is due to leave the bin and has not left it yet. */
const QUOTA_USED = `
-- Of the tenant that the transaction sees: what its tallies say, but for operations. Streams are counted by the gateways that serve them.
CREATE OR REPLACE FUNCTION trivet.quota_used(p_tenant uuid, p_key text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CASE p_key
    WHEN 'volumes' THEN
      RETURN (SELECT coalesce(sum(things), 0) FROM trivet.tally WHERE tenant_id = p_tenant AND kind = 'volume')
           - (SELECT count(*) FROM trivet.volume WHERE tenant_id = p_tenant AND state = 'binned' AND binned_until <= now());
    WHEN 'volume_bytes' THEN
      -- What is in the recycle bin counts until it leaves it, and an expansion from its acceptance.
      RETURN (SELECT coalesce(sum(bytes), 0) FROM trivet.tally WHERE tenant_id = p_tenant AND kind = 'volume')
           - (SELECT coalesce(sum(greatest(size_bytes, growing_to)), 0) FROM trivet.volume
               WHERE tenant_id = p_tenant AND state = 'binned' AND binned_until <= now());
    WHEN 'snapshots' THEN
      -- Whatever has an image: hidden ones, those of templates, and deleted ones that the next cut is compared with.
      RETURN (SELECT coalesce(sum(things), 0) FROM trivet.tally WHERE tenant_id = p_tenant AND kind = 'snapshot');
    WHEN 'buckets' THEN
      RETURN (SELECT coalesce(sum(things), 0) FROM trivet.tally WHERE tenant_id = p_tenant AND kind = 'bucket');
    WHEN 'bucket_bytes' THEN
      RETURN (SELECT coalesce(sum(bytes), 0) FROM trivet.tally WHERE tenant_id = p_tenant AND kind = 'bucket');
    WHEN 'operations' THEN
      -- Those that somebody asked for: what the appliance does by itself has no actor. By the indexes of those that wait and of
      -- those that have a place, which begin with the tenant.
      RETURN (SELECT count(*) FROM trivet.operation
               WHERE tenant_id = p_tenant AND place IS NULL AND finished_at IS NULL AND state IN ('pending', 'running')
                 AND actor IS NOT NULL)
           + (SELECT count(*) FROM trivet.operation
               WHERE tenant_id = p_tenant AND place IS NOT NULL AND finished_at IS NULL AND state IN ('pending', 'running')
                 AND actor IS NOT NULL);
    ELSE
      RETURN 0;
  END CASE;
END $$;
`;

const TO_OTHERS = `
CREATE OR REPLACE FUNCTION trivet.promised_to_others(p_shared_from uuid, p_backend uuid, p_pool text) RETURNS TABLE (bytes numeric)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(sum((SELECT coalesce(sum(t.bytes), 0) FROM trivet.tally t
                        WHERE t.tenant_id = b.tenant_id AND t.kind = 'volume' AND t.backend_id = b.id AND t.pool = p_pool)
                    - (SELECT coalesce(sum(greatest(v.size_bytes, v.growing_to)), 0) FROM trivet.volume v
                        WHERE v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.pool = p_pool
                          AND v.state = 'binned' AND v.binned_until <= now())), 0)
    FROM trivet.backend b
   WHERE b.shared_from = p_shared_from AND b.id <> p_backend;
$$;
`;

export class TalliesRead1797210000020 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [FILL, QUOTA_USED, TO_OTHERS]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const statement of [QUOTA_OF_GROWING, PROMISED_TO_OTHERS]) await runner.query(statement);
  }
}
