import type { QueryRunner } from 'typeorm';
import { whatIsDue } from '#platform/migrations/0037-what-is-due';
import type { Migration } from '#platform/migrations/locks';

const OF_ANY = "a.state = 'ready' AND a.key_operation IS NULL AND least(a.former_until, a.rotate_at) <= now()";
const KEYS = `,
    CASE WHEN EXISTS (SELECT FROM trivet.access a WHERE ${OF_ANY}) THEN 'access-keys' END`;

const look = (more = ''): string => `
-- Names of periodic tasks of workers for which there is something to do. Asked all the time, so that each of them need not ask:
-- a look into an index for each tenant at most. A task that is woken looks again by itself.
CREATE OR REPLACE FUNCTION trivet.what_is_due()${whatIsDue(more)}`;

const DUE = `
-- Tenants with accesses whose key is to be changed, or whose former key is to end.
CREATE FUNCTION trivet.access_keys_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT a.tenant_id FROM trivet.access a
   WHERE ${OF_ANY};
$$;
REVOKE ALL ON FUNCTION trivet.access_keys_due() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.access_keys_due() TO trivet_app, trivet_engine;
`;

/** An access has a former key until a time, a time at which its key is to be changed, and an operation that changes its keys. */
export class ChangedKeys1797210000421 implements Migration {
  readonly locks: Migration['locks'] = { access: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE trivet.access
      ADD COLUMN former_until timestamptz, ADD COLUMN rotate_at timestamptz, ADD COLUMN key_operation uuid`);
    await runner.query(DUE);
    await runner.query(look(KEYS));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(look());
    await runner.query('DROP FUNCTION trivet.access_keys_due()');
    await runner.query(
      'ALTER TABLE trivet.access DROP COLUMN former_until, DROP COLUMN rotate_at, DROP COLUMN key_operation',
    );
  }
}
