import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * The log is append-only: no role that the appliance works with may delete from it. This is the one way out, for workers, and
 * what it removes and the entry that says so are one transaction: whatever dies, nothing goes unsaid.
 */
const PRUNING = `
-- Of the oldest p_limit entries, those older than p_days. Not before the oldest is a day older than that, so that there is one
-- entry a day about it and not one for each look. By number and not by time: no index on the hot path is for this. Numbers
-- are drawn within seconds of an entry's time; one that is passed over is found on the next day.
CREATE FUNCTION trivet.prune_audit(p_days integer, p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  cutoff timestamptz := now() - p_days * interval '1 day';
  removed integer;
  first timestamptz;
  last timestamptz;
BEGIN
  IF (p_days >= 1 AND p_limit >= 1) IS NOT TRUE THEN
    RAISE EXCEPTION 'the audit log is kept for a day at least';
  END IF;
  -- One worker at a time: a second one finds nothing to do on its next round.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('trivet.prune_audit', 0)) THEN
    RETURN 0;
  END IF;
  IF (SELECT at FROM trivet.audit_entry ORDER BY seq LIMIT 1) >= cutoff - interval '1 day' IS NOT FALSE THEN
    RETURN 0;
  END IF;
  WITH oldest AS MATERIALIZED (
    SELECT tenant_id, seq FROM trivet.audit_entry ORDER BY seq LIMIT p_limit
  ), gone AS (
    DELETE FROM trivet.audit_entry e USING oldest
     WHERE e.tenant_id = oldest.tenant_id AND e.seq = oldest.seq AND e.at < cutoff
    RETURNING e.at
  )
  SELECT count(*), min(at), max(at) INTO removed, first, last FROM gone;
  INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, action, subject_kind, subject_name, before, after)
  SELECT t.id, t.name, 'system', 'retention', 'audit.prune', 'audit', 'log',
         jsonb_build_object('entries', removed, 'first', first, 'last', last), jsonb_build_object('keepDays', p_days)
    FROM trivet.tenant t WHERE t.id = (SELECT tenant_id FROM trivet.appliance_tenant());
  IF NOT FOUND THEN
    RAISE EXCEPTION 'nothing is removed from the audit log that it could not say';
  END IF;
  RETURN removed;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.prune_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.prune_audit TO trivet_engine;
`;

export class AuditRetention1796774400000 implements Migration {
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(PRUNING);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.prune_audit');
  }
}
