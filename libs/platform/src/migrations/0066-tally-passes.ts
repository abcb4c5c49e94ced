import type { QueryRunner } from 'typeorm';
import { COUNTED as COUNTED_BEFORE, recount as recountBefore } from '#platform/migrations/0027-tallies';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

interface Counted {
  kind: string;
  table: string;
  /** Of a row R: it counts. It does not depend on the time. */
  counts: string;
  pool: string;
  bytes: string;
}

/** What a page or a round would else count: volumes in the bin of each pool, and buckets that somebody else owns. */
export const COUNTED_NEW: readonly Counted[] = [
  { kind: 'binned', table: 'volume', counts: "R.state = 'binned'", pool: 'R.pool', bytes: '0' },
  {
    kind: 'registered',
    table: 'bucket',
    counts: "R.state <> 'gone' AND R.origin = 'registered'",
    pool: "''",
    bytes: 'coalesce(R.used_bytes, 0)',
  },
];
const COUNTED: readonly Counted[] = [...COUNTED_BEFORE.map(one => ({ ...one, kind: one.table })), ...COUNTED_NEW];
const KINDS = [...COUNTED.map(({ kind }) => kind), 'change_step'];

const TABLES = `
-- Rule: tally passes. Where the comparison of a tenant's rows of a kind with their tallies is, or when it ended. While it is open,
-- whoever changes what is counted says so in tally_change, and waits for nobody.
CREATE TABLE trivet.tally_pass (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  kind text NOT NULL,
  open boolean NOT NULL,
  -- Numbers of transactions mean something only in the run of the server that gave them.
  made_in text NOT NULL,
  -- Whoever may not have seen that it is open has a lower number.
  settled xid8,
  ended_at timestamptz,
  PRIMARY KEY (tenant_id, kind)
);
CREATE TABLE trivet.tally_portion (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  kind text NOT NULL,
  upto uuid NOT NULL,
  seen pg_snapshot NOT NULL,
  looked integer NOT NULL,
  counted jsonb NOT NULL,
  PRIMARY KEY (tenant_id, kind, upto)
);
CREATE TABLE trivet.tally_change (
  tenant_id uuid NOT NULL REFERENCES trivet.tenant ON DELETE CASCADE,
  kind text NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  row_id uuid NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  backend_id uuid NOT NULL,
  pool text NOT NULL,
  things bigint NOT NULL,
  bytes numeric NOT NULL,
  PRIMARY KEY (tenant_id, kind, seq)
);
${rowSecurity(['tally_pass', 'tally_portion', 'tally_change'])}
`;

const of = (expression: string, row: string): string => expression.replaceAll(/\bR\./g, () => `${row}.`);
const CHANGE = 'INSERT INTO trivet.tally_change (tenant_id, kind, row_id, backend_id, pool, things, bytes)';

/** As migration 0027 has them, and each says what it changed while a pass is open. */
const counting = ({ kind, counts, pool, bytes }: Counted, says: boolean): string => `
CREATE OR REPLACE FUNCTION trivet.count_${kind}() RETURNS trigger LANGUAGE plpgsql AS $$
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
      PERFORM trivet.add_to_tally(added.tenant_id, '${kind}', added.backend_id, added.pool, added.things, added.bytes);
    END LOOP;${
      says
        ? `
    ${CHANGE}
    SELECT m.tenant_id, '${kind}', m.id, m.backend_id, ${of(pool, 'm')}, 1, ${of(bytes, 'm')}
      FROM made m JOIN trivet.tally_pass p ON p.tenant_id = m.tenant_id AND p.kind = '${kind}' AND p.open
     WHERE ${of(counts, 'm')};`
        : ''
    }
    RETURN NULL;
  END IF;
  was := CASE WHEN ${of(counts, 'OLD')} THEN 1 ELSE 0 END;
  IF TG_OP = 'UPDATE' THEN has := CASE WHEN ${of(counts, 'NEW')} THEN 1 ELSE 0 END; END IF;${
    says
      ? `
  IF EXISTS (SELECT FROM trivet.tally_pass p WHERE p.tenant_id = OLD.tenant_id AND p.kind = '${kind}' AND p.open) THEN
    IF was = 1 THEN
      ${CHANGE}
      VALUES (OLD.tenant_id, '${kind}', OLD.id, OLD.backend_id, ${of(pool, 'OLD')}, -1, -(${of(bytes, 'OLD')})::numeric);
    END IF;
    IF has = 1 THEN
      ${CHANGE}
      VALUES (NEW.tenant_id, '${kind}', NEW.id, NEW.backend_id, ${of(pool, 'NEW')}, 1, ${of(bytes, 'NEW')});
    END IF;
  END IF;`
      : ''
  }
  IF has = 1 AND (NEW.backend_id <> OLD.backend_id OR ${of(pool, 'NEW')} <> ${of(pool, 'OLD')}) THEN
    PERFORM trivet.add_to_tally(NEW.tenant_id, '${kind}', NEW.backend_id, ${of(pool, 'NEW')}, 1, ${of(bytes, 'NEW')});
    has := 0;
  END IF;
  PERFORM trivet.add_to_tally(OLD.tenant_id, '${kind}', OLD.backend_id, ${of(pool, 'OLD')}, has - was,
    CASE has WHEN 1 THEN ${of(bytes, 'NEW')} ELSE 0 END - CASE was WHEN 1 THEN ${of(bytes, 'OLD')} ELSE 0 END);
  RETURN NULL;
END $$;
`;

const triggers = ({ kind, table, counts, pool, bytes }: Counted): string => `
REVOKE EXECUTE ON FUNCTION trivet.count_${kind}() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.count_${kind}() TO trivet_app;
CREATE TRIGGER count_${kind}_made AFTER INSERT ON trivet.${table} REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION trivet.count_${kind}();
CREATE TRIGGER count_${kind}_changed AFTER UPDATE ON trivet.${table} FOR EACH ROW
  WHEN ((${of(counts, 'OLD')}) <> (${of(counts, 'NEW')}) OR (${of(counts, 'NEW')})
    AND (OLD.backend_id <> NEW.backend_id OR ${of(pool, 'OLD')} <> ${of(pool, 'NEW')} OR ${of(bytes, 'OLD')} <> ${of(bytes, 'NEW')}))
  EXECUTE FUNCTION trivet.count_${kind}();
CREATE TRIGGER count_${kind}_removed AFTER DELETE ON trivet.${table} FOR EACH ROW
  WHEN (${of(counts, 'OLD')}) EXECUTE FUNCTION trivet.count_${kind}();
`;

const ofSteps = (of: 'made' | 'removed', row: 'm' | 'r', sign: '' | '-', says: boolean): string => `
    FOR counted IN
      SELECT v.tenant_id, v.backend_id, v.pool, count(*) AS things, sum(${row}.stored_bytes) AS bytes
        FROM ${of} ${row} JOIN trivet.volume v ON v.tenant_id = ${row}.tenant_id AND v.id = ${row}.volume_id
       WHERE ${row}.stored_bytes > 0 GROUP BY 1, 2, 3
    LOOP
      PERFORM trivet.add_to_tally(counted.tenant_id, 'change_step', counted.backend_id, counted.pool, ${sign}counted.things, ${sign}counted.bytes);
    END LOOP;${
      says
        ? `
    ${CHANGE}
    SELECT v.tenant_id, 'change_step', ${row}.id, v.backend_id, v.pool, ${sign}1, ${sign}${row}.stored_bytes
      FROM ${of} ${row} JOIN trivet.tally_pass p ON p.tenant_id = ${row}.tenant_id AND p.kind = 'change_step' AND p.open
      JOIN trivet.volume v ON v.tenant_id = ${row}.tenant_id AND v.id = ${row}.volume_id
     WHERE ${row}.stored_bytes > 0;`
        : ''
    }`;
const countingSteps = (says: boolean): string => `
CREATE OR REPLACE FUNCTION trivet.count_change_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  counted record;
BEGIN
  IF TG_OP <> 'DELETE' THEN${ofSteps('made', 'm', '', says)}
  END IF;
  IF TG_OP <> 'INSERT' THEN${ofSteps('removed', 'r', '-', says)}
  END IF;
  RETURN NULL;
END $$;
`;

/** Rows R of a kind, as they are read: with what they count for, or without. */
const rowsOf = ({ kind, table, counts, pool, bytes }: Counted) => ({
  kind,
  from: `trivet.${table} r`,
  counts: of(counts, 'r'),
  backend: 'r.backend_id',
  pool: of(pool, 'r'),
  bytes: of(bytes, 'r'),
});
const READ = [
  ...COUNTED.map(rowsOf),
  {
    kind: 'change_step',
    from: 'trivet.change_step r JOIN trivet.volume v ON v.tenant_id = r.tenant_id AND v.id = r.volume_id',
    counts: 'r.stored_bytes > 0',
    backend: 'v.backend_id',
    pool: 'v.pool',
    bytes: 'r.stored_bytes',
  },
];
const there = ({ kind, from, counts, backend, pool, bytes }: (typeof READ)[number], only = ''): string =>
  `SELECT '${kind}' AS kind, ${backend} AS backend_id, ${pool} AS pool, count(*) AS things, sum(${bytes})::numeric AS bytes
            FROM ${from} WHERE r.tenant_id = p_tenant AND (${counts})${only} GROUP BY 2, 3`;

/** Of tallies: what they lack, in a loop that adds it and says it. Both sides are read by one statement. */
const mending = (source: string, ofTally: string, row: string): string => `
  FOR lacking IN
    SELECT kind, backend_id, pool, coalesce(h.things, 0) - coalesce(t.things, 0) AS things,
           coalesce(h.bytes, 0) - coalesce(t.bytes, 0) AS bytes
      FROM (${source}) AS h
      FULL JOIN (SELECT kind, backend_id, pool, sum(things)::bigint AS things, sum(bytes) AS bytes
                   FROM trivet.tally WHERE tenant_id = p_tenant${ofTally} GROUP BY 1, 2, 3) AS t USING (kind, backend_id, pool)
     WHERE (coalesce(h.things, 0), coalesce(h.bytes, 0)) <> (coalesce(t.things, 0), coalesce(t.bytes, 0))
  LOOP
    PERFORM trivet.add_to_tally(p_tenant, lacking.kind, lacking.backend_id, lacking.pool, lacking.things, lacking.bytes);
    RETURN QUERY SELECT ${row};
  END LOOP;`;

const RECOUNT = `
CREATE OR REPLACE FUNCTION trivet.recount(p_tenant uuid)
RETURNS TABLE (kind text, backend_id uuid, pool text, things bigint, bytes numeric)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  lacking record;
BEGIN
  -- Two at once would add it twice.
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'recount', p_tenant), 0));
  ${mending(READ.map(one => there(one)).join('\n            UNION ALL '), '', 'lacking.kind, lacking.backend_id, lacking.pool, lacking.things, lacking.bytes')}
END $$;
`;

/** As migration 0042 has it. */
const STEPS_BEFORE = `SELECT 'change_step', v.backend_id, v.pool, count(*), sum(c.stored_bytes)::numeric
              FROM trivet.change_step c JOIN trivet.volume v ON v.tenant_id = c.tenant_id AND v.id = c.volume_id
             WHERE c.tenant_id = p_tenant AND c.stored_bytes > 0 GROUP BY 2, 3`;

const LAST = "'ffffffff-ffff-ffff-ffff-ffffffffffff'";
const SAID = 'p_kind, lacking.backend_id, lacking.pool, lacking.things, lacking.bytes';

const portionOf = ({ kind, from, counts, backend, pool, bytes }: (typeof READ)[number]): string => `
  IF p_kind = '${kind}' THEN
    WITH part AS MATERIALIZED (
      SELECT r.id, ${backend} AS backend_id, ${pool} AS pool, (${counts}) AS counts, ${bytes} AS bytes
        FROM ${from} WHERE r.tenant_id = p_tenant AND r.id > place ORDER BY r.id LIMIT p_rows)
    INSERT INTO trivet.tally_portion (tenant_id, kind, upto, seen, looked, counted)
    SELECT p_tenant, p_kind, CASE WHEN count(*) < p_rows THEN ${LAST} ELSE (SELECT id FROM part ORDER BY id DESC LIMIT 1) END,
           pg_current_snapshot(), count(*),
           (SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]')
              FROM (SELECT backend_id, pool, count(*) AS things, sum(bytes)::numeric AS bytes
                      FROM part WHERE counts GROUP BY 1, 2) AS s)
      FROM part
    RETURNING * INTO portion;
  END IF;`;
const countOf = ({ kind, from }: (typeof READ)[number]): string =>
  `IF p_kind = '${kind}' THEN SELECT count(*) INTO seen FROM (SELECT FROM ${from.split(' JOIN ')[0]} WHERE r.tenant_id = p_tenant LIMIT p_rows) AS few; END IF;`;

/** Of the portions, and of what changed in each after it was read. */
const PASSED = `
      SELECT p_kind AS kind, a.backend_id, a.pool, sum(a.things)::bigint AS things, sum(a.bytes) AS bytes
        FROM (SELECT c.backend_id, c.pool, c.things, c.bytes
                FROM trivet.tally_portion p, jsonb_to_recordset(p.counted) AS c (backend_id uuid, pool text, things bigint, bytes numeric)
               WHERE p.tenant_id = p_tenant AND p.kind = p_kind
              UNION ALL
              SELECT c.backend_id, c.pool, c.things, c.bytes FROM trivet.tally_change c
               CROSS JOIN LATERAL (SELECT p.seen FROM trivet.tally_portion p
                                    WHERE p.tenant_id = p_tenant AND p.kind = p_kind AND p.upto >= c.row_id
                                    ORDER BY p.upto LIMIT 1) AS p
               WHERE c.tenant_id = p_tenant AND c.kind = p_kind AND NOT pg_visible_in_snapshot(c.xid, p.seen)) AS a
       GROUP BY 2, 3`;

/** @param settled SQL: higher than any transaction's number that may not have seen that the pass is open */
export const stepOf = (settled: string): string => `
-- One step of the comparison: of a few rows at once, of many by portions in the order of their ids. A portion keeps what it
-- counted and which transactions it saw; at the end that is added which the others changed in it since. So it is exact, and
-- nobody waits. NULL as progress: a tally lacked this, and has it now.
CREATE FUNCTION trivet.tally_step(p_tenant uuid, p_kind text, p_rows integer)
RETURNS TABLE (progress text, looked integer, kind text, backend_id uuid, pool text, things bigint, bytes numeric)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  here text := (SELECT d.oid || '/' || pg_postmaster_start_time() FROM pg_database d WHERE d.datname = current_database());
  pass trivet.tally_pass;
  portion trivet.tally_portion;
  place uuid;
  lacking record;
  seen integer;
BEGIN
  -- Whoever recounts adds too.
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws('/', 'recount', p_tenant), 0));
  SELECT * INTO pass FROM trivet.tally_pass WHERE tenant_id = p_tenant AND kind = p_kind;
  IF pass.open IS NOT TRUE OR pass.made_in <> here THEN
    DELETE FROM trivet.tally_portion WHERE tenant_id = p_tenant AND kind = p_kind;
    DELETE FROM trivet.tally_change WHERE tenant_id = p_tenant AND kind = p_kind;
    ${READ.map(countOf).join('\n    ')}
    IF seen < p_rows THEN
      ${mending(READ.map(one => there(one, ` AND p_kind = '${one.kind}'`)).join('\n            UNION ALL '), ' AND kind = p_kind', `NULL::text, 0, ${SAID}`)}
    END IF;
    INSERT INTO trivet.tally_pass AS p (tenant_id, kind, open, made_in, ended_at)
    VALUES (p_tenant, p_kind, seen >= p_rows, here, CASE WHEN seen < p_rows THEN now() END)
    ON CONFLICT (tenant_id, kind) DO UPDATE SET open = excluded.open, made_in = excluded.made_in, settled = NULL,
      ended_at = coalesce(excluded.ended_at, p.ended_at);
    RETURN QUERY SELECT CASE WHEN seen < p_rows THEN 'done' ELSE 'open' END, seen, p_kind, NULL::uuid, NULL::text, NULL::bigint, NULL::numeric;
    RETURN;
  END IF;
  IF pass.settled IS NULL THEN
    UPDATE trivet.tally_pass SET settled = ${settled}
     WHERE tenant_id = p_tenant AND kind = p_kind RETURNING settled INTO pass.settled;
  END IF;
  IF pg_snapshot_xmin(pg_current_snapshot()) < pass.settled THEN
    RETURN QUERY SELECT 'waits', 0, p_kind, NULL::uuid, NULL::text, NULL::bigint, NULL::numeric;
    RETURN;
  END IF;
  SELECT coalesce((SELECT upto FROM trivet.tally_portion WHERE tenant_id = p_tenant AND kind = p_kind ORDER BY upto DESC LIMIT 1),
                  '00000000-0000-0000-0000-000000000000') INTO place;
  ${READ.map(portionOf).join('\n')}
  IF portion.upto = ${LAST} THEN
    ${mending(PASSED, ' AND kind = p_kind', `NULL::text, 0, ${SAID}`)}
    DELETE FROM trivet.tally_portion WHERE tenant_id = p_tenant AND kind = p_kind;
    DELETE FROM trivet.tally_change WHERE tenant_id = p_tenant AND kind = p_kind;
    UPDATE trivet.tally_pass SET open = false, settled = NULL, ended_at = now() WHERE tenant_id = p_tenant AND kind = p_kind;
  END IF;
  RETURN QUERY SELECT CASE WHEN portion.upto = ${LAST} THEN 'done' ELSE 'portion' END, portion.looked, p_kind,
                      NULL::uuid, NULL::text, NULL::bigint, NULL::numeric;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.tally_step(uuid, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.tally_step(uuid, text, integer) TO trivet_engine;
`;

/** See migration 0077. */
export const BY_SNAPSHOT = 'pg_snapshot_xmax(pg_current_snapshot())';

const NEXT = `
-- What is to be compared next: what is open, and then what was not for the longest time.
CREATE FUNCTION trivet.tallies_to_compare(p_again_ms float8, p_most integer) RETURNS TABLE (tenant_id uuid, kind text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.id, k.kind
    FROM trivet.tenant t CROSS JOIN unnest('{${KINDS.join(',')}}'::text[]) AS k (kind)
    LEFT JOIN trivet.tally_pass p ON p.tenant_id = t.id AND p.kind = k.kind
   WHERE p.tenant_id IS NULL OR p.open OR p.ended_at <= now() - p_again_ms * interval '1 ms'
   ORDER BY coalesce(p.open, false) DESC, p.ended_at NULLS FIRST, t.id, k.kind LIMIT p_most;
$$;
REVOKE EXECUTE ON FUNCTION trivet.tallies_to_compare(float8, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.tallies_to_compare(float8, integer) TO trivet_engine;
`;

/** Tallies of two more kinds, counted from here on, and the comparison of all by portions. What was there is added by the next one. */
export class TallyPasses1797210000396 implements Migration {
  readonly locks: Migration['locks'] = {
    // By the new tables' keys.
    tenant: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    volume: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    bucket: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    const counters = COUNTED.map(one => counting(one, true));
    for (const statement of [
      TABLES,
      ...counters,
      ...COUNTED_NEW.map(triggers),
      countingSteps(true),
      RECOUNT,
      stepOf(BY_SNAPSHOT),
      NEXT,
    ])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.tallies_to_compare(float8, integer)');
    await runner.query('DROP FUNCTION trivet.tally_step(uuid, text, integer)');
    const added = new Set(COUNTED_NEW.map(({ kind }) => kind));
    await runner.query(recountBefore([STEPS_BEFORE]));
    for (const { kind, table } of COUNTED_NEW) {
      for (const trigger of ['made', 'changed', 'removed'])
        await runner.query(`DROP TRIGGER count_${kind}_${trigger} ON trivet.${table}`);
      await runner.query(`DROP FUNCTION trivet.count_${kind}()`);
    }
    for (const one of COUNTED.filter(({ kind }) => !added.has(kind))) await runner.query(counting(one, false));
    await runner.query(countingSteps(false));
    await runner.query("DELETE FROM trivet.tally WHERE kind IN ('binned', 'registered')");
    await runner.query('DROP TABLE trivet.tally_change, trivet.tally_portion, trivet.tally_pass');
  }
}
