import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Nearly always nothing is due: one look says so. */
const DUE = `
CREATE FUNCTION trivet.access_keys_due() RETURNS TABLE (tenant_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT a.tenant_id FROM trivet.access a
   WHERE a.state = 'ready' AND a.key_operation IS NULL AND least(a.former_until, a.rotate_at) <= now();
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
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.access_keys_due()');
    await runner.query(
      'ALTER TABLE trivet.access DROP COLUMN former_until, DROP COLUMN rotate_at, DROP COLUMN key_operation',
    );
  }
}
