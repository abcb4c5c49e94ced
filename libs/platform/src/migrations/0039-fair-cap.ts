import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** @param cap the highest number that is given, as an expression */
const takePlaces = (cap: string) => `
-- Rule: tenant cap. Free places up to it, for the transaction that asks. Who takes one holds its lock from before the look that finds
-- it free until the commit: so nobody waits for anybody, and no two take the same. Passing a place on needs no lock.
CREATE OR REPLACE FUNCTION trivet.take_places(p_tenant uuid, p_backend uuid, p_class text, p_cap integer, p_wanted bigint)
RETURNS TABLE (place smallint)
LANGUAGE plpgsql AS $$
DECLARE
  line bigint := hashtextextended(concat_ws('/', p_tenant, p_backend, p_class), 0);
  locked smallint[];
BEGIN
  LOOP
    locked := ARRAY(
      SELECT free.n
        FROM (SELECT n::smallint AS n FROM generate_series(1, ${cap}) AS n
              EXCEPT
              SELECT o.place FROM trivet.operation o
               WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class AND o.place IS NOT NULL
               ORDER BY n OFFSET 0) AS free
       WHERE pg_try_advisory_xact_lock(line # free.n)
       LIMIT p_wanted);
    -- The look above may be older than the lock; this one is not.
    RETURN QUERY
      SELECT n FROM unnest(locked) AS n
       WHERE NOT EXISTS (SELECT FROM trivet.operation o
                          WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class
                            AND o.place = n);
    EXIT WHEN FOUND OR cardinality(locked) = 0;
  END LOOP;
END $$;
`;

const FAIR_CAP = `
CREATE TABLE trivet.fair_cap (
  class text PRIMARY KEY,
  cap integer NOT NULL CHECK (cap > 0),
  until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON trivet.fair_cap TO trivet_engine;

-- How many places each line of a class has now: the tenant cap, or less while all lines together have more places than workers
-- can soon begin.
CREATE FUNCTION trivet.cap_of(p_class text, p_cap integer) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN least(p_cap, (SELECT f.cap FROM trivet.fair_cap f WHERE f.class = p_class AND f.until > now()));
END $$;
REVOKE EXECUTE ON FUNCTION trivet.cap_of(text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.cap_of(text, integer) TO trivet_app, trivet_engine;
`;

/** Who has a place soon begins: the lines of a class share what workers have room for. */
export class FairCap1797210000130 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FAIR_CAP + takePlaces('trivet.cap_of(p_class, p_cap)'));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(takePlaces('p_cap'));
    await runner.query('DROP FUNCTION trivet.cap_of(text, integer)');
    await runner.query('DROP TABLE trivet.fair_cap');
  }
}
