import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

export const WAITING_FOR_BACKENDS = `
-- Of one tenant, or of all: backends whose circuit is open.
CREATE OR REPLACE FUNCTION trivet.waiting_for_backends(p_tenant uuid)
RETURNS TABLE (tenant text, name text, waiting bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT t.name, b.name, count(o.id)
    FROM trivet.backend_circuit c
    JOIN trivet.backend b ON b.tenant_id = c.tenant_id AND b.id = c.backend_id
    JOIN trivet.tenant t ON t.id = c.tenant_id
    LEFT JOIN trivet.operation o ON o.tenant_id = c.tenant_id AND o.backend_id = c.backend_id
                                AND o.finished_at IS NULL AND o.state = 'pending'
   WHERE c.open_until > now() AND (p_tenant IS NULL OR c.tenant_id = p_tenant)
   GROUP BY t.name, b.name;
$$;
`;

/** What waits behind an open circuit is neither stuck nor about to run: people must see which it is, and why. */
const WAITING = `
-- What the last call or probe that got no answer said; for whoever runs the backend. reason is for callers.
ALTER TABLE trivet.backend_circuit ADD COLUMN detail text;
${WAITING_FOR_BACKENDS}REVOKE EXECUTE ON FUNCTION trivet.waiting_for_backends FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.waiting_for_backends TO trivet_app;
`;

export class WaitingForBackends1796256000000 implements Migration {
  readonly locks: Migration['locks'] = {
    backend_circuit: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(WAITING);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION trivet.waiting_for_backends');
    await runner.query('ALTER TABLE trivet.backend_circuit DROP COLUMN detail');
  }
}
