import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Those that the engine role sees too, and no others. */
const ENGINE_TABLES = ['operation', 'operation_slot', 'operation_event', 'backend_circuit'] as const;

const CURRENT_TENANTS = `
-- Tenants whose operations a transaction of the application role ends together; every other table is empty for it then.
CREATE FUNCTION trivet.current_tenants() RETURNS uuid[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (nullif(current_setting('trivet.tenants', true), ''))::uuid[];
REVOKE EXECUTE ON FUNCTION trivet.current_tenants() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.current_tenants() TO trivet_app, trivet_engine;
`;

/** Rule: tenant isolation. Looked at after the policy of the one tenant, since policies stand in the order of their names. */
const policy = (table: string) => `
CREATE POLICY tenants ON trivet.${table} TO trivet_app
  USING ((tenant_id = ANY (trivet.current_tenants())) IS TRUE)
  WITH CHECK ((tenant_id = ANY (trivet.current_tenants())) IS TRUE);
`;

const PASS_ON = `
-- After operations of any number of tenants left their slots and places: the places go to the next in the lines that they stood
-- in, or else to the next of their tenant, backend and class that wait for room. Runs in the same transaction. A place that is passed on
-- needs no count, so ends at the same time need not know of each other. Locked ones are skipped: these ends pass on to
-- different ones. Who is next in one more of the lines gets a place of his own, if there is one. Who is next and has a
-- place already was rung before its turn had come: it is rung again. A place beyond the cap is from a time when the cap was higher:
-- nobody gets it any more.
-- Mostly nobody waits. To find that out takes a twentieth of what the plan of the rest takes to start (0.4 ms).
-- The first four belong together: one element of each for every operation that has ended. p_resources are those of all of them.
CREATE FUNCTION trivet.pass_on(p_tenants uuid[], p_backends uuid[], p_classes text[], p_places smallint[], p_resources uuid[], p_cap integer)
RETURNS TABLE ("operationId" uuid, "queueClass" text, "dispatchNo" integer)
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM trivet.operation_slot s
                  WHERE s.resource_id = ANY (p_resources) AND (s.tenant_id = ANY (p_tenants)) IS TRUE)
     AND NOT EXISTS (SELECT FROM (SELECT DISTINCT * FROM unnest(p_tenants, p_backends, p_classes) AS ended (tenant, backend, class)) AS line,
                            LATERAL (SELECT FROM trivet.operation o
                                      WHERE o.tenant_id = line.tenant AND o.backend_id = line.backend AND o.class = line.class
                                        AND o.place IS NULL AND o.finished_at IS NULL LIMIT 1) AS waiting)
  THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH cap AS MATERIALIZED (
      SELECT ended.class, trivet.cap_of(ended.class, p_cap) AS n FROM unnest(p_classes) AS ended (class) GROUP BY ended.class
    ), line AS MATERIALIZED (
      SELECT ended.tenant, ended.backend, ended.class,
             array_agg(ended.place ORDER BY ended.place) FILTER (WHERE ended.place <= cap.n) AS places
        FROM unnest(p_tenants, p_backends, p_classes, p_places) AS ended (tenant, backend, class, place)
        JOIN cap ON cap.class = ended.class
       GROUP BY ended.tenant, ended.backend, ended.class
    ), silent AS MATERIALIZED (
      SELECT tenant_id, backend_id FROM trivet.backend_circuit
       WHERE tenant_id = ANY (p_tenants) AND trivet.circuit_state(open_until) = 'open'
    ), beside AS MATERIALIZED (
      SELECT tenant_id, operation_id, resource_id, slot, priority, seq
        FROM trivet.operation_slot
       WHERE resource_id = ANY (p_resources) AND (tenant_id = ANY (p_tenants)) IS TRUE
    ), ready AS MATERIALIZED (
      -- By an array each is looked up by its id. A join would be planned as a scan of all that the tenant ever did.
      SELECT id FROM trivet.operation
       WHERE id = ANY (ARRAY(SELECT operation_id FROM beside)) AND (tenant_id = ANY (p_tenants)) IS TRUE
         AND state = 'pending' AND next_run_at <= now()
    ), next_in_line AS (
      SELECT DISTINCT ON (tenant_id, resource_id, slot) operation_id
        FROM beside
       WHERE operation_id IN (SELECT id FROM ready)
       ORDER BY tenant_id, resource_id, slot, priority DESC, seq
    ), next_with_room AS (
      SELECT next.*
        FROM line, LATERAL (
             SELECT o.id, o.tenant_id, o.backend_id, o.class, o.priority, o.seq
               FROM trivet.operation o
              WHERE o.tenant_id = line.tenant AND o.backend_id = line.backend AND o.class = line.class
                AND o.finished_at IS NULL AND o.place IS NULL AND o.state = 'pending' AND o.next_run_at <= now()
                AND NOT EXISTS (
                      SELECT FROM trivet.operation_slot mine
                        JOIN trivet.operation_slot other
                          ON other.resource_id = mine.resource_id AND other.slot = mine.slot
                         AND other.operation_id <> mine.operation_id AND (other.tenant_id = mine.tenant_id) IS TRUE
                       WHERE mine.tenant_id = line.tenant AND mine.operation_id = o.id
                         AND NOT other.parked AND (other.held OR other.seq < mine.seq))
              ORDER BY o.priority DESC, o.seq
              LIMIT coalesce(cardinality(line.places), 0)
                FOR UPDATE OF o SKIP LOCKED) AS next
       WHERE NOT EXISTS (SELECT FROM silent WHERE silent.tenant_id = line.tenant AND silent.backend_id = line.backend)
    ), in_line AS (
      SELECT o.id, o.place, o.tenant_id, o.backend_id, o.class, o.priority, o.seq
        FROM trivet.operation o
       WHERE o.id = ANY (ARRAY(SELECT operation_id FROM next_in_line)) AND (o.tenant_id = ANY (p_tenants)) IS TRUE
         AND o.state = 'pending'
         AND NOT EXISTS (SELECT FROM silent WHERE silent.tenant_id = o.tenant_id AND silent.backend_id = o.backend_id)
         FOR UPDATE OF o SKIP LOCKED
    ), heir AS (
      SELECT heirs.id, free.place
        FROM (SELECT next.*, row_number() OVER (PARTITION BY tenant_id, backend_id, class
                                                    ORDER BY next.in_line DESC, priority DESC, seq) AS rank
                FROM (SELECT id, tenant_id, backend_id, class, priority, seq, true AS in_line
                        FROM in_line WHERE place IS NULL
                      UNION
                      SELECT id, tenant_id, backend_id, class, priority, seq, id IN (SELECT id FROM in_line)
                        FROM next_with_room) AS next
             ) AS heirs
        JOIN line ON line.tenant = heirs.tenant_id AND line.backend = heirs.backend_id AND line.class = heirs.class
       CROSS JOIN LATERAL unnest(line.places) WITH ORDINALITY AS free (place, rank)
       WHERE free.rank = heirs.rank
    ), others AS (
      SELECT id, tenant_id, backend_id, class, row_number() OVER (PARTITION BY tenant_id, backend_id, class) AS rank
        FROM in_line WHERE place IS NULL AND id <> ALL (ARRAY(SELECT id FROM heir))
    ), places AS MATERIALIZED (
      -- More than wanted: the places of the heirs look free.
      SELECT wanted.tenant_id, wanted.backend_id, wanted.class, free.place,
             row_number() OVER (PARTITION BY wanted.tenant_id, wanted.backend_id, wanted.class) AS rank
        FROM (SELECT tenant_id, backend_id, class, count(*) + cardinality(p_places) AS n FROM others GROUP BY 1, 2, 3) AS wanted
       CROSS JOIN LATERAL trivet.take_places(wanted.tenant_id, wanted.backend_id, wanted.class, p_cap, wanted.n) AS free
       WHERE NOT EXISTS (SELECT FROM line
                          WHERE line.tenant = wanted.tenant_id AND line.backend = wanted.backend_id AND line.class = wanted.class
                            AND free.place = ANY (line.places))
    ), due AS (
      SELECT id, place FROM in_line WHERE place IS NOT NULL
      UNION ALL
      SELECT id, place FROM heir
      UNION ALL
      SELECT id, place FROM others JOIN places USING (tenant_id, backend_id, class, rank)
    )
    UPDATE trivet.operation o SET place = due.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
      FROM due
     WHERE o.id = ANY (ARRAY(SELECT id FROM due)) AND o.id = due.id AND (o.tenant_id = ANY (p_tenants)) IS TRUE
    RETURNING o.id, o.class, o.dispatch_no;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.pass_on FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.pass_on TO trivet_app;
`;

/** Ends and recovery points of several tenants are one transaction. trivet.wake is of the release before. */
export class EndsOfSeveralTenants1797210000140 implements Migration {
  readonly locks: Migration['locks'] = Object.fromEntries(
    ENGINE_TABLES.map(table => [table, { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } as const]),
  );

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CURRENT_TENANTS + ENGINE_TABLES.map(policy).join('') + PASS_ON);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ENGINE_TABLES) await runner.query(`DROP POLICY tenants ON trivet.${table}`);
    await runner.query('DROP FUNCTION trivet.current_tenants()');
    await runner.query('DROP FUNCTION trivet.pass_on(uuid[], uuid[], text[], smallint[], uuid[], integer)');
  }
}
