import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const LOST = `
-- A gateway misses operations that it has acknowledged: this database was promoted, or put back, without its last transactions
-- (P1). Each is in the audit log of its tenant. Target ids that were given in those transactions are not given
-- again: hosts tell disks apart by them (I1). Gives how many were noted.
CREATE FUNCTION trivet.note_lost_operations(p_lost jsonb) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  noted integer;
BEGIN
  INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_id, subject_name, after)
  SELECT t.id, t.name, 'system', 'database', 'operation.lose', 'operation', lost.id::text, lost.name,
         jsonb_build_object('kind', lost.kind, 'acceptedAt', lost."acceptedAt")
    FROM jsonb_to_recordset(p_lost) AS lost (tenant uuid, id uuid, kind text, name text, "acceptedAt" text)
    JOIN trivet.tenant t ON t.id = lost.tenant
   WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = lost.id);
  GET DIAGNOSTICS noted = ROW_COUNT;
  IF noted > 0 THEN
    PERFORM pg_advisory_xact_lock(42);
    INSERT INTO trivet.target_id (tid, volume_id, released_at)
    SELECT max(tid) + 1000, gen_random_uuid(), now() FROM trivet.target_id HAVING max(tid) + 1000 <= 999999999;
  END IF;
  RETURN noted;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.note_lost_operations(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.note_lost_operations(jsonb) TO trivet_engine;
`;

/** What a database has lost is said. */
export class LostCommits1797210000100 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(LOST);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.note_lost_operations(jsonb)');
  }
}
