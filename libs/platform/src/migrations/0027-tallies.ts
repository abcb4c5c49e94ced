import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

interface Counted {
  table: string;
  /** Of a row R: it counts. It does not depend on the time. */
  counts: string;
  pool: string;
  bytes: string;
}

/** What is counted of which rows. A volume on its way out of the bin has given its place away; one that is due to leave: quota_used. */
export const COUNTED: readonly Counted[] = [
  {
    table: 'volume',
    counts: "R.state <> 'gone' AND NOT (R.state = 'deleting' AND R.binned_until IS NOT NULL)",
    pool: 'R.pool',
    bytes: 'greatest(R.size_bytes, R.growing_to)',
  },
  {
    table: 'snapshot',
    counts: "R.state <> 'gone' OR R.cut IS NOT NULL AND R.image_gone_at IS NULL",
    pool: "''",
    bytes: '0',
  },
  { table: 'bucket', counts: "R.state <> 'gone'", pool: "''", bytes: 'coalesce(R.used_bytes, 0)' },
];

const of = (expression: string, row: string): string => expression.replaceAll(/\bR\./g, () => `${row}.`);

const TALLY = `
-- Rule: tallies. How many there are of a kind, and how much they hold: for each tenant, backend and pool the sum over its stripes.
-- Whoever changes what is counted changes, in the same transaction, a stripe that nobody holds: so nobody waits for anybody, and
-- there are no more stripes than there were transactions at once.
CREATE TABLE trivet.tally (
  tenant_id uuid NOT NULL,
  kind text NOT NULL,
  backend_id uuid NOT NULL,
  pool text NOT NULL,
  stripe bigint GENERATED ALWAYS AS IDENTITY,
  things bigint NOT NULL,
  bytes numeric NOT NULL,
  PRIMARY KEY (tenant_id, kind, backend_id, pool, stripe),
  FOREIGN KEY (tenant_id, backend_id) REFERENCES trivet.backend ON DELETE CASCADE
) WITH (fillfactor = 20);
${rowSecurity(['tally'])}

CREATE FUNCTION trivet.add_to_tally(p_tenant uuid, p_kind text, p_backend uuid, p_pool text, p_things bigint, p_bytes numeric)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_things = 0 AND p_bytes = 0 THEN RETURN; END IF;
  UPDATE trivet.tally t SET things = t.things + p_things, bytes = t.bytes + p_bytes
   WHERE t.tenant_id = p_tenant AND t.kind = p_kind AND t.backend_id = p_backend AND t.pool = p_pool
     AND t.stripe = (SELECT o.stripe FROM trivet.tally o
                      WHERE o.tenant_id = p_tenant AND o.kind = p_kind AND o.backend_id = p_backend AND o.pool = p_pool
                      ORDER BY o.stripe LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED);
  IF NOT FOUND THEN
    INSERT INTO trivet.tally (tenant_id, kind, backend_id, pool, things, bytes)
    VALUES (p_tenant, p_kind, p_backend, p_pool, p_things, p_bytes);
  END IF;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.add_to_tally(uuid, text, uuid, text, bigint, numeric) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.add_to_tally(uuid, text, uuid, text, bigint, numeric) TO trivet_app;
`;

/** Of new rows by statement, since many come at once; of changed ones by row, since most changes are of something else. */
const counting = ({ table, counts, pool, bytes }: Counted): string => `
CREATE FUNCTION trivet.count_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  added record;
  was bigint;
  has bigint := 0;
BEGIN
  IF TG_OP = 'INSERT' THEN
    FOR added IN
      SELECT m.tenant_id, m.backend_id, ${of(pool, 'm')} AS pool, count(*) AS things, sum(${of(bytes, 'm')}) AS bytes
        FROM made m WHERE ${of(counts, 'm')} GROUP BY 1, 2, 3
    LOOP
      PERFORM trivet.add_to_tally(added.tenant_id, '${table}', added.backend_id, added.pool, added.things, added.bytes);
    END LOOP;
    RETURN NULL;
  END IF;
  was := CASE WHEN ${of(counts, 'OLD')} THEN 1 ELSE 0 END;
  IF TG_OP = 'UPDATE' THEN has := CASE WHEN ${of(counts, 'NEW')} THEN 1 ELSE 0 END; END IF;
  IF has = 1 AND (NEW.backend_id <> OLD.backend_id OR ${of(pool, 'NEW')} <> ${of(pool, 'OLD')}) THEN
    PERFORM trivet.add_to_tally(NEW.tenant_id, '${table}', NEW.backend_id, ${of(pool, 'NEW')}, 1, ${of(bytes, 'NEW')});
    has := 0;
  END IF;
  PERFORM trivet.add_to_tally(OLD.tenant_id, '${table}', OLD.backend_id, ${of(pool, 'OLD')}, has - was,
    CASE has WHEN 1 THEN ${of(bytes, 'NEW')} ELSE 0 END - CASE was WHEN 1 THEN ${of(bytes, 'OLD')} ELSE 0 END);
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.count_${table}() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.count_${table}() TO trivet_app;
-- Before keep_quotas, by its name.
CREATE TRIGGER count_made AFTER INSERT ON trivet.${table} REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.count_${table}();
CREATE TRIGGER count_changed AFTER UPDATE ON trivet.${table} FOR EACH ROW
  WHEN ((${of(counts, 'OLD')}) <> (${of(counts, 'NEW')}) OR (${of(counts, 'NEW')})
    AND (OLD.backend_id <> NEW.backend_id OR ${of(pool, 'OLD')} <> ${of(pool, 'NEW')} OR ${of(bytes, 'OLD')} <> ${of(bytes, 'NEW')}))
  EXECUTE FUNCTION trivet.count_${table}();
CREATE TRIGGER count_removed AFTER DELETE ON trivet.${table} FOR EACH ROW
  WHEN (${of(counts, 'OLD')}) EXECUTE FUNCTION trivet.count_${table}();
`;

const there = ({ table, counts, pool, bytes }: Counted): string =>
  `SELECT '${table}' AS kind, r.backend_id, ${of(pool, 'r')} AS pool, count(*) AS things, sum(${of(bytes, 'r')})::numeric AS bytes
            FROM trivet.${table} r WHERE r.tenant_id = p_tenant AND (${of(counts, 'r')}) GROUP BY 2, 3`;

/** @param also what later migrations count, as `there` says it */
export const recount = (also: readonly string[] = []): string => `
-- Adds to a tenant's tallies what they lack, and says it. Both are read by one statement, so that whoever changes something
-- meanwhile is in both or in none, and waits for nothing. What it says is a defect, or was there before tallies were.
CREATE OR REPLACE FUNCTION trivet.recount(p_tenant uuid)
RETURNS TABLE (kind text, backend_id uuid, pool text, things bigint, bytes numeric)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  lacking record;
BEGIN
  -- Two at once would add it twice.
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'recount', p_tenant), 0));
  FOR lacking IN
    SELECT kind, backend_id, pool, coalesce(h.things, 0) - coalesce(t.things, 0) AS things,
           coalesce(h.bytes, 0) - coalesce(t.bytes, 0) AS bytes
      FROM (${[...COUNTED.map(there), ...also].join('\n            UNION ALL ')}) AS h
      FULL JOIN (SELECT kind, backend_id, pool, sum(things)::bigint AS things, sum(bytes) AS bytes
                   FROM trivet.tally WHERE tenant_id = p_tenant GROUP BY 1, 2, 3) AS t USING (kind, backend_id, pool)
     WHERE (coalesce(h.things, 0), coalesce(h.bytes, 0)) <> (coalesce(t.things, 0), coalesce(t.bytes, 0))
  LOOP
    PERFORM trivet.add_to_tally(p_tenant, lacking.kind, lacking.backend_id, lacking.pool, lacking.things, lacking.bytes);
    RETURN QUERY SELECT lacking.kind, lacking.backend_id, lacking.pool, lacking.things, lacking.bytes;
  END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.recount(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.recount(uuid) TO trivet_engine;
`;

/** Counted from here on, by both releases; what was there before is added by the next one, which reads tallies. */
export class Tallies1797210000010 implements Migration {
  readonly locks: Migration['locks'] = {
    // By the new table's key.
    backend: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    snapshot: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    bucket: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [TALLY, ...COUNTED.map(counting), recount()]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.recount(uuid)');
    for (const { table } of COUNTED) {
      for (const trigger of ['made', 'changed', 'removed'])
        await runner.query(`DROP TRIGGER count_${trigger} ON trivet.${table}`);
      await runner.query(`DROP FUNCTION trivet.count_${table}()`);
    }
    await runner.query('DROP FUNCTION trivet.add_to_tally(uuid, text, uuid, text, bigint, numeric)');
    await runner.query('DROP TABLE trivet.tally');
  }
}
