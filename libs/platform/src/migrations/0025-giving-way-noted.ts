import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * Rule: audited bin. At the end of the transaction, whose entry says by then who asked for what the volume gave way to: a pool's
 * room, a quota, of its own tenant or of another one that shares the pool.
 */
const NOTED = `
-- Rule: audited bin. Who asked is told to one's own tenant only.
CREATE FUNCTION trivet.note_giving_way() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  asked trivet.audit_entry;
BEGIN
  SELECT * INTO asked FROM trivet.audit_entry
   WHERE xid = pg_current_xact_id() AND tenant_id = NEW.tenant_id AND action <> 'volume.give_way' ORDER BY seq LIMIT 1;
  INSERT INTO trivet.audit_entry (tenant_id, tenant_name, actor_kind, actor, token_name, address, door, action, subject_kind,
                                  subject_id, subject_name, before, after)
  SELECT t.id, t.name, coalesce(asked.actor_kind, 'system'), coalesce(asked.actor, 'recycle-bin'), asked.token_name,
         coalesce(asked.address, ''), coalesce(asked.door, ''), 'volume.give_way', 'volume', NEW.id::text, NEW.name,
         jsonb_build_object('binnedUntil', OLD.binned_until, 'size', OLD.size_bytes::text),
         CASE WHEN asked.tenant_id IS NOT NULL
                THEN jsonb_build_object('for', asked.subject_kind || ' ' || asked.subject_name, 'by', asked.action)
              WHEN trivet.current_tenant() IS DISTINCT FROM NEW.tenant_id
                THEN jsonb_build_object('for', 'others who share pool ' || NEW.pool) END
    FROM trivet.tenant t WHERE t.id = NEW.tenant_id;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.note_giving_way FROM PUBLIC;

CREATE CONSTRAINT TRIGGER note_giving_way AFTER UPDATE OF binned_until ON trivet.volume DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (OLD.state = 'binned' AND NEW.state = 'binned' AND NEW.binned_until < OLD.binned_until)
  EXECUTE FUNCTION trivet.note_giving_way();

-- As audit_of_all, of the actions that begin with p_action: each of them has its place in the index, and none is sought beyond.
CREATE FUNCTION trivet.audit_of_all_by_action(p_before bigint, p_limit integer, p_tenant text, p_actor text, p_action text,
                                              p_subject text, p_since timestamptz, p_until timestamptz)
RETURNS SETOF trivet.audit_entry
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE kind AS (
    (SELECT action COLLATE "C" AS action FROM trivet.audit_entry WHERE action COLLATE "C" >= p_action
      ORDER BY action COLLATE "C" LIMIT 1)
    UNION ALL
    SELECT (SELECT e.action COLLATE "C" FROM trivet.audit_entry e WHERE e.action COLLATE "C" > kind.action
             ORDER BY e.action COLLATE "C" LIMIT 1)
      FROM kind WHERE starts_with(kind.action, p_action)
  )
  SELECT entry.*
    FROM kind, LATERAL (
         SELECT * FROM trivet.audit_entry e
          WHERE e.action COLLATE "C" = kind.action AND e.seq < coalesce(p_before, 9223372036854775807)
            AND (p_tenant IS NULL OR e.tenant_name = p_tenant) AND (p_actor IS NULL OR e.actor = p_actor)
            AND (p_subject IS NULL OR e.subject_name = p_subject OR e.subject_id = p_subject)
            AND (p_since IS NULL OR e.at >= p_since) AND (p_until IS NULL OR e.at < p_until)
          ORDER BY e.seq DESC LIMIT p_limit) AS entry
   WHERE starts_with(kind.action, p_action)
   ORDER BY entry.seq DESC LIMIT p_limit;
$$;
REVOKE EXECUTE ON FUNCTION trivet.audit_of_all_by_action FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.audit_of_all_by_action TO trivet_app;
`;

export class GivingWayNoted1797123600000 implements Migration {
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(NOTED);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER note_giving_way ON trivet.volume');
    await runner.query('DROP FUNCTION trivet.note_giving_way, trivet.audit_of_all_by_action');
  }
}
