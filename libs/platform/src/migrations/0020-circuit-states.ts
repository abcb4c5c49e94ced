import type { QueryRunner } from 'typeorm';
import { readOutcomesFunction } from '#platform/migrations/0001-foundation';
import { wakeFunction } from '#platform/migrations/0009-lean-operations';
import { WAITING_FOR_BACKENDS } from '#platform/migrations/0015-waiting-for-backends';
import type { Migration } from '#platform/migrations/locks';

const MADE = 'trivet.circuit_state, trivet.no_worker_has, trivet.circuits';

/** Whether a circuit is open, and what waits for a backend, is said here and nowhere else. */
const CIRCUITS = `
-- open: its operations are held back, and callers are told at once. half_open: the time of that is over and no probe was
-- answered yet, so operations are tried; the backend counts as silent all the same. closed: it answers. Inlined by the planner.
CREATE FUNCTION trivet.circuit_state(p_open_until timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_open_until IS NULL THEN 'closed' WHEN p_open_until > now() THEN 'open' ELSE 'half_open' END;
$$;
-- Of an unfinished operation: it is in line, or whoever had it is gone.
CREATE FUNCTION trivet.no_worker_has(p_state text, p_lease_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p_state = 'pending' OR p_state = 'running' AND coalesce(p_lease_until <= now(), false);
$$;
-- Of one tenant, or of all: backends that somebody has heard from, for better or worse, and how many operations wait for each.
CREATE FUNCTION trivet.circuits(p_tenant uuid)
RETURNS TABLE (tenant_id uuid, backend_id uuid, tenant text, name text, state text, waiting bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.tenant_id, c.backend_id, t.name, b.name, trivet.circuit_state(c.open_until),
         CASE trivet.circuit_state(c.open_until) WHEN 'closed' THEN 0 ELSE
           (SELECT count(*) FROM trivet.operation o
             WHERE o.tenant_id = c.tenant_id AND o.backend_id = c.backend_id AND o.finished_at IS NULL
               AND trivet.no_worker_has(o.state, o.lease_until)) END
    FROM trivet.backend_circuit c
    JOIN trivet.backend b ON b.tenant_id = c.tenant_id AND b.id = c.backend_id
    JOIN trivet.tenant t ON t.id = c.tenant_id
   WHERE p_tenant IS NULL OR c.tenant_id = p_tenant;
$$;
REVOKE EXECUTE ON FUNCTION ${MADE} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ${MADE} TO trivet_app, trivet_engine;
`;

/** For gateways of the release before, which ask by this name. */
const WAITING = `
CREATE OR REPLACE FUNCTION trivet.waiting_for_backends(p_tenant uuid)
RETURNS TABLE (tenant text, name text, waiting bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tenant, name, waiting FROM trivet.circuits(p_tenant) WHERE state <> 'closed';
$$;
`;

const isOpen = (row: string): string => `trivet.circuit_state(${row}open_until) = 'open'`;
const wasOpen = (row: string): string => `${row}open_until > now()`;

export class CircuitStates1796688000000 implements Migration {
  readonly locks = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CIRCUITS + WAITING + wakeFunction(isOpen) + readOutcomesFunction(isOpen));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(WAITING_FOR_BACKENDS + wakeFunction(wasOpen) + readOutcomesFunction(wasOpen));
    await runner.query(`DROP FUNCTION ${MADE}`);
  }
}
