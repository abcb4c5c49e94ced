import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const TABLE = `
-- Where this database was made, and then each server that it was put back into. The highest number counts: of two databases that
-- take writes it is the one that a person has declared last. It is the time in microseconds, so that two restores of one dump
-- have different ones.
CREATE TABLE trivet.database_restore (
  number bigint PRIMARY KEY,
  -- Of the PostgreSQL cluster, its standbys included.
  system_identifier bigint NOT NULL,
  declared_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO trivet.database_restore (number, system_identifier)
SELECT 0, system_identifier FROM pg_control_system();
`;

const FUNCTIONS = `
-- Rule: declared database. Which restore this database is, the cluster that it was declared for and the one that it is in: a copy
-- in another one does not count before a person says so.
CREATE FUNCTION trivet.database_standing() RETURNS TABLE (number bigint, declared_for bigint, system_identifier bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.number, r.system_identifier, s.system_identifier
    FROM pg_control_system() s LEFT JOIN (SELECT * FROM trivet.database_restore ORDER BY number DESC LIMIT 1) r ON true;
$$;

-- Said by a person of a database that was put back: that it counts from now on. Hosts keep the fences that were drawn after the
-- dump: numbers go on at the microseconds since 1970, of which less than one was drawn each, also where dumps were put back
-- before. Target ids given after the dump are not given again (I1).
CREATE FUNCTION trivet.declare_restored() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_now bigint := floor(extract(epoch FROM clock_timestamp()) * 1000000);
  v_number bigint;
BEGIN
  LOCK TABLE trivet.database_restore IN EXCLUSIVE MODE;
  INSERT INTO trivet.database_restore (number, system_identifier)
  SELECT greatest(v_now, (SELECT max(number) + 1 FROM trivet.database_restore)), system_identifier
    FROM pg_control_system()
  RETURNING number INTO v_number;
  PERFORM pg_advisory_xact_lock(hashtextextended('trivet/host_fence', 0));
  PERFORM setval('trivet.host_fence', greatest(v_now, (SELECT last_value + 1000 FROM trivet.host_fence)));
  PERFORM pg_advisory_xact_lock(42);
  INSERT INTO trivet.target_id (tid, volume_id, released_at)
  SELECT max(tid) + 1000, gen_random_uuid(), now() FROM trivet.target_id HAVING max(tid) + 1000 <= 999999999;
  RETURN v_number;
END $$;

REVOKE EXECUTE ON FUNCTION trivet.database_standing, trivet.declare_restored FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.database_standing TO trivet_app, trivet_engine;
`;

/** Which of several databases counts, after one was put back into another cluster. Rules: docs/adr/0035. */
export class DatabaseRestores1797210000310 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLE + FUNCTIONS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION trivet.database_standing, trivet.declare_restored;
      DROP TABLE trivet.database_restore`);
  }
}
