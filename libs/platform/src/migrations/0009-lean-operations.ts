import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/**
 * What an operation writes, it writes into each index again. Events are read by their operation or by their transaction, never
 * by tenant and number, and nobody but the sequence gives the number: the key cost a third of their index entries and kept
 * nothing. Buckets keep room on their pages for the update of their creation that changes no indexed column.
 */
const FEWER_INDEX_ENTRIES = `
ALTER TABLE trivet.operation_event DROP CONSTRAINT operation_event_pkey;
ALTER TABLE trivet.bucket SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
`;

/** isOpen: of a circuit, by the name of its row and a point. A later release says it by a function. */
export const wakeFunction = (isOpen: (row: string) => string): string => `
-- After operations left their slots and places: the places go to the next in the lines that they stood in, or else to the
-- next of their tenant, backend and class that wait for room. Runs in the same transaction. A place that is passed on
-- needs no count, so ends at the same time need not know of each other. Locked ones are skipped: these ends pass on to
-- different ones. Who is next in one more of the lines gets a place of his own, if there is one. Who is next and has a
-- place already was rung before its turn had come: it is rung again.
-- Mostly nobody waits. To find that out takes a twentieth of what the plan of the rest takes to start (0.4 ms).
CREATE OR REPLACE FUNCTION trivet.wake(p_tenant uuid, p_backend uuid, p_class text, p_resources uuid[], p_places smallint[], p_cap integer)
RETURNS TABLE ("operationId" uuid, "queueClass" text, "dispatchNo" integer)
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM trivet.operation_slot s
                  WHERE s.resource_id = ANY (p_resources) AND (s.tenant_id = p_tenant) IS TRUE)
     AND NOT EXISTS (SELECT FROM trivet.operation o
                      WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class
                        AND o.place IS NULL AND o.finished_at IS NULL)
  THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH line AS MATERIALIZED (
      SELECT operation_id, resource_id, slot, priority, seq
        FROM trivet.operation_slot
       WHERE resource_id = ANY (p_resources) AND (tenant_id = p_tenant) IS TRUE
    ), ready AS MATERIALIZED (
      -- By an array each is looked up by its id. A join would be planned as a scan of all that the tenant ever did.
      SELECT id FROM trivet.operation
       WHERE tenant_id = p_tenant AND id = ANY (ARRAY(SELECT operation_id FROM line)) AND state = 'pending' AND next_run_at <= now()
    ), next_in_line AS (
      SELECT DISTINCT ON (resource_id, slot) operation_id
        FROM line
       WHERE operation_id IN (SELECT id FROM ready)
       ORDER BY resource_id, slot, priority DESC, seq
    ), next_with_room AS (
      SELECT o.id, o.priority, o.seq
        FROM trivet.operation o
       WHERE o.tenant_id = p_tenant AND o.backend_id = p_backend AND o.class = p_class
         AND o.finished_at IS NULL AND o.place IS NULL AND o.state = 'pending' AND o.next_run_at <= now()
         AND NOT EXISTS (
               SELECT FROM trivet.operation_slot mine
                 JOIN trivet.operation_slot other
                   ON other.resource_id = mine.resource_id AND other.slot = mine.slot
                  AND other.operation_id <> mine.operation_id AND (other.tenant_id = p_tenant) IS TRUE
                WHERE mine.tenant_id = p_tenant AND mine.operation_id = o.id AND NOT other.parked AND (other.held OR other.seq < mine.seq))
         AND NOT EXISTS (SELECT FROM trivet.backend_circuit
                          WHERE tenant_id = p_tenant AND backend_id = p_backend AND ${isOpen('')})
       ORDER BY o.priority DESC, o.seq
       LIMIT cardinality(p_places)
         FOR UPDATE OF o SKIP LOCKED
    ), in_line AS (
      SELECT o.id, o.place, o.backend_id, o.class, o.priority, o.seq
        FROM trivet.operation o
       WHERE o.tenant_id = p_tenant AND o.id = ANY (ARRAY(SELECT operation_id FROM next_in_line)) AND o.state = 'pending'
         AND NOT EXISTS (SELECT FROM trivet.backend_circuit c
                          WHERE c.tenant_id = p_tenant AND c.backend_id = o.backend_id AND ${isOpen('c.')})
         FOR UPDATE OF o SKIP LOCKED
    ), heir AS (
      SELECT heirs.id, free.place
        FROM (SELECT id, row_number() OVER (ORDER BY in_line DESC, priority DESC, seq) AS rank
                FROM (SELECT id, priority, seq, true AS in_line
                        FROM in_line WHERE place IS NULL AND backend_id = p_backend AND class = p_class
                      UNION
                      SELECT id, priority, seq, id IN (SELECT id FROM in_line) FROM next_with_room) AS next
             ) AS heirs
        JOIN unnest(p_places) WITH ORDINALITY AS free (place, rank) USING (rank)
    ), others AS (
      SELECT id, backend_id, class, row_number() OVER (PARTITION BY backend_id, class) AS rank
        FROM in_line WHERE place IS NULL AND id <> ALL (ARRAY(SELECT id FROM heir))
    ), places AS MATERIALIZED (
      -- More than wanted: the places of the heirs look free.
      SELECT line.backend_id, line.class, free.place,
             row_number() OVER (PARTITION BY line.backend_id, line.class) AS rank
        FROM (SELECT backend_id, class, count(*) + cardinality(p_places) AS wanted FROM others GROUP BY 1, 2) AS line,
             LATERAL trivet.take_places(p_tenant, line.backend_id, line.class, p_cap, line.wanted) AS free
       WHERE NOT (line.backend_id = p_backend AND line.class = p_class AND free.place = ANY (p_places))
    ), due AS (
      SELECT id, place FROM in_line WHERE place IS NOT NULL
      UNION ALL
      SELECT id, place FROM heir
      UNION ALL
      SELECT id, place FROM others JOIN places USING (backend_id, class, rank)
    )
    UPDATE trivet.operation o SET place = due.place, dispatch_no = o.dispatch_no + 1, dispatched_at = now()
      FROM due
     WHERE o.tenant_id = p_tenant AND o.id = ANY (ARRAY(SELECT id FROM due)) AND o.id = due.id
    RETURNING o.id, o.class, o.dispatch_no;
END $$;
`;

const WAKE = `${wakeFunction(row => `${row}open_until > now()`)}
REVOKE EXECUTE ON FUNCTION trivet.wake FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.wake TO trivet_app;
`;

export class LeanOperations1795737600000 implements Migration {
  readonly locks: Migration['locks'] = {
    bucket: { mode: 'SHARE UPDATE EXCLUSIVE', work: [], seconds: 0 },
    operation_event: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FEWER_INDEX_ENTRIES + WAKE);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP FUNCTION trivet.wake;
      ALTER TABLE trivet.bucket RESET (fillfactor, autovacuum_vacuum_scale_factor);
      ALTER TABLE trivet.operation_event ADD CONSTRAINT operation_event_pkey PRIMARY KEY (tenant_id, seq)`);
  }
}
