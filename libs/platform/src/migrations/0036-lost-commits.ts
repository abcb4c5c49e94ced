import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

export const NOTE_LOST = `
-- A gateway misses operations that it has acknowledged: this database was promoted, or put back, without its last transactions
-- (P1). Each is in the audit log of its tenant. Target ids that were given in those transactions are not given
-- again: hosts tell disks apart by them (I1). Of a tenant that is being removed nobody waits for anything. Gives those that it noted.
CREATE FUNCTION trivet.note_lost_operations(p_lost jsonb) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  WITH lost AS MATERIALIZED (
    SELECT lost.*, t.name AS tenant_name
      FROM jsonb_to_recordset(p_lost) AS lost (tenant uuid, id uuid, kind text, name text, "acceptedAt" text)
      JOIN trivet.tenant t ON t.id = lost.tenant AND t.state <> 'draining'
     WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = lost.id)
  ), entry AS (
    INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_id, subject_name, after)
    SELECT tenant, tenant_name, 'system', 'database', 'operation.lose', 'operation', id::text, name,
           jsonb_build_object('kind', kind, 'acceptedAt', "acceptedAt")
      FROM lost
  )
  SELECT id FROM lost;
  IF FOUND THEN
    PERFORM pg_advisory_xact_lock(42);
    INSERT INTO trivet.target_id (tid, volume_id, released_at)
    SELECT max(tid) + 1000, gen_random_uuid(), now() FROM trivet.target_id HAVING max(tid) + 1000 <= 999999999;
  END IF;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.note_lost_operations(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.note_lost_operations(jsonb) TO trivet_engine;
`;

/** What a database has lost is said. */
export class LostCommits1797210000100 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(NOTE_LOST);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.note_lost_operations(jsonb)');
  }
}
