import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';
import { rowSecurity } from '#platform/migrations/row-security';

const TABLE = `
-- What a bulk operation is about, one row each. A row is begun in the transaction that accepts its own operation, once.
CREATE TABLE trivet.bulk_item (
  tenant_id uuid NOT NULL,
  -- The operation that they are items of.
  bulk_id uuid NOT NULL,
  nth integer NOT NULL,
  subject_id uuid NOT NULL,
  -- As it was called when the bulk was accepted; empty when it was not there.
  name text NOT NULL,
  -- As it was then: it is not begun when it is another by the time it is its turn. NULL: nothing of it can change the meaning.
  version text,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'begun', 'done', 'failed', 'skipped')),
  -- Begun for it, or found on the way to the same end.
  operation_id uuid,
  error jsonb,
  -- How often it was busy, and when it is tried again.
  tries integer NOT NULL DEFAULT 0,
  try_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, bulk_id, nth)
);
-- None of what is over: a round reads what is left of its bulk, and what all bulks of its tenant have begun.
CREATE INDEX bulk_item_left ON trivet.bulk_item (tenant_id, state, bulk_id, nth) WHERE state IN ('waiting', 'begun');
`;

const forget = (more: string): string => `
CREATE OR REPLACE FUNCTION trivet.forget_operations() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM trivet.operation_slot WHERE operation_id = ANY (ARRAY(SELECT id FROM forgotten));
  DELETE FROM trivet.operation_event WHERE operation_id = ANY (ARRAY(SELECT id FROM forgotten));${more}
  RETURN NULL;
END $$;
`;

const FUNCTIONS = `
-- What a user may do now; NULL: nothing. By an API token no more than the token may; a login at the page may have ended meanwhile.
CREATE FUNCTION trivet.role_now(p_tenant uuid, p_user uuid, p_token uuid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN p_token IS NULL THEN u.role ELSE
           (SELECT (ARRAY['viewer', 'operator', 'admin'])[least(array_position(ARRAY['viewer', 'operator', 'admin'], a.role),
                                                               array_position(ARRAY['viewer', 'operator', 'admin'], u.role))]
              FROM trivet.admin_token a
             WHERE a.tenant_id = p_tenant AND a.id = p_token AND a.user_id = p_user AND a.kind = 'token'
               AND (a.expires_at IS NULL OR a.expires_at > now())) END
    FROM trivet.tenant t JOIN trivet.tenant_user u ON u.tenant_id = t.id AND u.state = 'active'
   WHERE t.id = p_tenant AND t.state = 'active' AND u.id = p_user;
$$;
-- Items of bulks whose operations are forgotten next: of the portion that ended first, from p_from on, so many. How many those were.
CREATE FUNCTION trivet.forget_bulk_items(p_portion integer, p_from timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone integer;
BEGIN
  WITH due AS MATERIALIZED (
    SELECT o.tenant_id, o.id, o.kind FROM trivet.operation o
     WHERE o.finished_at >= p_from AND o.finished_at < now() - interval '30 days' ORDER BY o.finished_at LIMIT p_portion
  )
  DELETE FROM trivet.bulk_item
   WHERE ctid = ANY (ARRAY(SELECT i.ctid FROM due JOIN trivet.bulk_item i ON i.tenant_id = due.tenant_id AND i.bulk_id = due.id
                            WHERE due.kind = 'bulk.run' LIMIT p_portion));
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;
REVOKE EXECUTE ON FUNCTION trivet.role_now(uuid, uuid, uuid), trivet.forget_bulk_items(integer, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trivet.role_now(uuid, uuid, uuid) TO trivet_app;
GRANT EXECUTE ON FUNCTION trivet.forget_bulk_items(integer, timestamptz) TO trivet_engine;
`;

/** Rule: history. Items go with their operation, as slots and events do. */
export class BulkItems1797210001700 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLE + rowSecurity(['bulk_item']) + FUNCTIONS);
    await runner.query(
      forget(`
  DELETE FROM trivet.bulk_item i USING forgotten f
   WHERE f.kind = 'bulk.run' AND i.tenant_id = f.tenant_id AND i.bulk_id = f.id;`),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP FUNCTION trivet.forget_bulk_items(integer, timestamptz), trivet.role_now(uuid, uuid, uuid)',
    );
    await runner.query(forget(''));
    await runner.query('DROP TABLE trivet.bulk_item');
  }
}
