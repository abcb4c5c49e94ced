import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * For a migration with which releases before `version`, its own number, can no longer run: who is started after it refuses,
 * who runs says so. Without it the release before goes on with every migration, and is tested to.
 */
export const endReleasesBefore = (version: number): string => `
CREATE OR REPLACE FUNCTION trivet.oldest_schema() RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT ${version}::bigint $$;
`;

const SUPPORT = `
${endReleasesBefore(0)}
COMMENT ON FUNCTION trivet.oldest_schema IS 'A program that was made for an older schema than this can no longer run with it.';
REVOKE EXECUTE ON FUNCTION trivet.oldest_schema() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.oldest_schema() TO trivet_app, trivet_engine;

-- Of operations, that it can run; NULL: of a release that does not say it.
ALTER TABLE trivet.worker ADD COLUMN kinds text[];
`;

/** Which releases may still run, and what the workers that run can do. */
export class OldestRelease1797210000090 implements Migration {
  readonly locks: Migration['locks'] = {
    worker: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SUPPORT);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.worker DROP COLUMN kinds');
    await runner.query('DROP FUNCTION trivet.oldest_schema()');
  }
}
