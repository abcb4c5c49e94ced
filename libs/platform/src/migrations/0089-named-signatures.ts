import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const findAccess = (stale: string): string => `
CREATE OR REPLACE FUNCTION trivet.find_access(p_tenant uuid, p_endpoint uuid, p_name text)
RETURNS TABLE (serves boolean, id uuid, account_id text, state text, fingerprint bytea, active_operation uuid,
               stale boolean, sealed bytea)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('trivet.tenant', p_tenant::text, true);
  RETURN QUERY
    SELECT t.state = 'active' AND e.state = 'active', a.id, a.account_id, a.state, a.fingerprint, a.active_operation,
           ${stale}, s.sealed
      FROM trivet.endpoint e
      JOIN trivet.tenant t ON t.id = e.tenant_id
      LEFT JOIN trivet.access a
        ON a.tenant_id = p_tenant AND a.backend_id = e.backend_id AND a.name = p_name AND a.state <> 'gone'
      LEFT JOIN trivet.secret s
        ON s.tenant_id = p_tenant AND s.owner_table = 'access' AND s.owner_id = a.id AND s.name = 'credentials'
     WHERE e.tenant_id = p_tenant AND e.id = p_endpoint;
END $$;
`;

/** An access has names that its signatures stand under, the one that counts first; their end, and a time from which a Grant makes that later. */
export class NamedSignatures1797210001001 implements Migration {
  readonly locks: Migration['locks'] = { access: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE trivet.access ADD COLUMN signed_as text[], ADD COLUMN expires_at timestamptz, ADD COLUMN renew_at timestamptz',
    );
    await runner.query(findAccess('a.stale OR coalesce(a.renew_at <= now(), false)'));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(findAccess('a.stale'));
    await runner.query('ALTER TABLE trivet.access DROP COLUMN signed_as, DROP COLUMN expires_at, DROP COLUMN renew_at');
  }
}
