import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** `counted`: which of the others' volumes, beside those that are there. */
export const promisedToOthers = (counted = ''): string => `
CREATE OR REPLACE FUNCTION trivet.promised_to_others(p_shared_from uuid, p_backend uuid, p_pool text) RETURNS TABLE (bytes numeric)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(sum(v.size_bytes), 0)
       + coalesce(sum((SELECT sum(greatest((o.request ->> 'sizeBytes')::numeric - v.size_bytes, 0))
                         FROM trivet.operation o
                        WHERE o.resource_id = v.id AND o.kind = 'volume.expand' AND o.finished_at IS NULL)), 0)
    FROM trivet.backend b
    JOIN trivet.volume v ON v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.pool = p_pool AND v.state <> 'gone'${counted}
   WHERE b.shared_from = p_shared_from AND b.id <> p_backend;
$$;
`;

export const NOT_LEAVING = '\n     AND NOT trivet.leaves_bin(v.state, v.binned_until)';

/** Rule: shared pool. The recycle bin gives way to new volumes, also to those of others who share its pool. */
const GIVING_WAY = `
-- On its way out of the recycle bin: its place is promised to somebody else already.
CREATE FUNCTION trivet.leaves_bin(p_state text, p_binned_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT p_binned_until IS NOT NULL AND (p_state = 'deleting' OR p_binned_until <= now());
$$;

-- Ends the time in the bin of as many as hold p_bytes, one's own before those of others who share the pool, the oldest first;
-- of none where all together hold less. Says what they hold. Whoever is being restored or removed is left alone.
CREATE FUNCTION trivet.bin_gives_way(p_tenant uuid, p_backend uuid, p_shared_from uuid, p_pool text, p_bytes numeric) RETURNS numeric
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held numeric := 0;
  one record;
  tenants uuid[] := '{}';
  ids uuid[] := '{}';
BEGIN
  FOR one IN
    SELECT v.tenant_id, v.id, v.size_bytes
      FROM trivet.backend b
      JOIN trivet.volume v ON v.tenant_id = b.tenant_id AND v.backend_id = b.id AND v.pool = p_pool
     WHERE (b.tenant_id = p_tenant AND b.id = p_backend OR b.shared_from = p_shared_from)
       AND v.state = 'binned' AND v.binned_until > now()
     ORDER BY v.tenant_id <> p_tenant, v.binned_until, v.id
       FOR UPDATE OF v SKIP LOCKED
  LOOP
    EXIT WHEN held >= p_bytes;
    held := held + one.size_bytes;
    tenants := tenants || one.tenant_id;
    ids := ids || one.id;
  END LOOP;
  IF held >= p_bytes THEN
    UPDATE trivet.volume v SET binned_until = now()
      FROM unnest(tenants, ids) AS oldest (tenant_id, id)
     WHERE v.tenant_id = oldest.tenant_id AND v.id = oldest.id;
  END IF;
  RETURN held;
END $$;

REVOKE EXECUTE ON FUNCTION trivet.leaves_bin, trivet.bin_gives_way FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.leaves_bin, trivet.bin_gives_way TO trivet_app;
`;

export class GivingWay1795996800000 implements Migration {
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(GIVING_WAY);
    await runner.query(promisedToOthers(NOT_LEAVING));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(promisedToOthers());
    await runner.query('DROP FUNCTION trivet.bin_gives_way, trivet.leaves_bin');
  }
}
