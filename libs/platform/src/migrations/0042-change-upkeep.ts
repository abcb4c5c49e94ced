import type { QueryRunner } from 'typeorm';
import { recount } from '#platform/migrations/0027-tallies';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const QUEUE = `
-- Rule: change upkeep. Volumes whose chain of changes is to be looked at, queued in the transaction that changes a step or takes
-- a cut away. Only added to: two that change one volume at once wait for nothing, and what was looked at is removed by its number.
CREATE TABLE trivet.change_upkeep (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  due_at timestamptz NOT NULL DEFAULT now(),
  seq bigint GENERATED ALWAYS AS IDENTITY,
  volume_id uuid NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);
CREATE INDEX change_upkeep_due ON trivet.change_upkeep (tenant_id, due_at, seq);
${rowSecurity(['change_upkeep'])}

CREATE FUNCTION trivet.queue_step_upkeep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- One that is being built is looked at again later: whoever builds it may never end it.
  INSERT INTO trivet.change_upkeep (tenant_id, volume_id, due_at)
  SELECT DISTINCT m.tenant_id, m.volume_id, now() + CASE m.state WHEN 'building' THEN interval '1 min' ELSE interval '0' END
    FROM made m;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.queue_step_upkeep() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.queue_step_upkeep() TO trivet_app;
CREATE TRIGGER queue_made AFTER INSERT ON trivet.change_step REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.queue_step_upkeep();
CREATE TRIGGER queue_changed AFTER UPDATE ON trivet.change_step REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.queue_step_upkeep();

CREATE FUNCTION trivet.queue_cut_upkeep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO trivet.change_upkeep (tenant_id, volume_id) VALUES (OLD.tenant_id, OLD.volume_id);
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.queue_cut_upkeep() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.queue_cut_upkeep() TO trivet_app;
CREATE TRIGGER queue_cut_gone AFTER UPDATE OF cut ON trivet.snapshot FOR EACH ROW
  WHEN (OLD.cut IS NOT NULL AND NEW.cut IS DISTINCT FROM OLD.cut) EXECUTE FUNCTION trivet.queue_cut_upkeep();
CREATE TRIGGER queue_removed AFTER DELETE ON trivet.snapshot FOR EACH ROW
  WHEN (OLD.cut IS NOT NULL) EXECUTE FUNCTION trivet.queue_cut_upkeep();
`;

const STORED = `
-- Rule: tallies. How many bytes the change index stores of each pool.
CREATE FUNCTION trivet.count_change_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted record;
BEGIN
  IF TG_OP <> 'DELETE' THEN
    FOR counted IN
      SELECT v.tenant_id, v.backend_id, v.pool, count(*) AS things, sum(m.stored_bytes) AS bytes
        FROM made m JOIN trivet.volume v ON v.tenant_id = m.tenant_id AND v.id = m.volume_id
       WHERE m.stored_bytes > 0 GROUP BY 1, 2, 3
    LOOP
      PERFORM trivet.add_to_tally(counted.tenant_id, 'change_step', counted.backend_id, counted.pool, counted.things, counted.bytes);
    END LOOP;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    FOR counted IN
      SELECT v.tenant_id, v.backend_id, v.pool, count(*) AS things, sum(r.stored_bytes) AS bytes
        FROM removed r JOIN trivet.volume v ON v.tenant_id = r.tenant_id AND v.id = r.volume_id
       WHERE r.stored_bytes > 0 GROUP BY 1, 2, 3
    LOOP
      PERFORM trivet.add_to_tally(counted.tenant_id, 'change_step', counted.backend_id, counted.pool, -counted.things, -counted.bytes);
    END LOOP;
  END IF;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.count_change_step() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.count_change_step() TO trivet_app;
CREATE TRIGGER count_made AFTER INSERT ON trivet.change_step REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.count_change_step();
CREATE TRIGGER count_changed AFTER UPDATE ON trivet.change_step REFERENCING OLD TABLE AS removed NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.count_change_step();
CREATE TRIGGER count_removed AFTER DELETE ON trivet.change_step REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.count_change_step();
`;

/** As `recount` wants it. */
const STEPS = `SELECT 'change_step', v.backend_id, v.pool, count(*), sum(c.stored_bytes)::numeric
              FROM trivet.change_step c JOIN trivet.volume v ON v.tenant_id = c.tenant_id AND v.id = c.volume_id
             WHERE c.tenant_id = p_tenant AND c.stored_bytes > 0 GROUP BY 2, 3`;

/** The change index is kept by what changed. What was there before is queued and counted by the next migration. */
export class ChangeUpkeep1797210000160 implements Migration {
  readonly locks: Migration['locks'] = {
    // By the new table's key.
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    change_step: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    snapshot: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [QUEUE, STORED, recount([STEPS])]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(recount());
    for (const [table, trigger] of TRIGGERS) await runner.query(`DROP TRIGGER ${trigger} ON trivet.${table}`);
    for (const name of ['count_change_step', 'queue_cut_upkeep', 'queue_step_upkeep'])
      await runner.query(`DROP FUNCTION trivet.${name}()`);
    await runner.query("DELETE FROM trivet.tally WHERE kind = 'change_step'");
    await runner.query('DROP TABLE trivet.change_upkeep');
  }
}

const TRIGGERS = [
  ['change_step', 'count_made'],
  ['change_step', 'count_changed'],
  ['change_step', 'count_removed'],
  ['change_step', 'queue_made'],
  ['change_step', 'queue_changed'],
  ['snapshot', 'queue_cut_gone'],
  ['snapshot', 'queue_removed'],
] as const;
