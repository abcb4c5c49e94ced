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

/** Rule: history. Items go with their operation, as slots and events do. */
export class BulkItems1797210001300 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TABLE + rowSecurity(['bulk_item']));
    await runner.query(
      forget(`
  DELETE FROM trivet.bulk_item
   WHERE tenant_id = ANY (ARRAY(SELECT DISTINCT tenant_id FROM forgotten)) AND bulk_id = ANY (ARRAY(SELECT id FROM forgotten));`),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(forget(''));
    await runner.query('DROP TABLE trivet.bulk_item');
  }
}
