import type { QueryRunner } from 'typeorm';
import { NOTE_LOST } from '#platform/migrations/0036-lost-commits';
import type { Migration } from '#platform/migrations/locks';

/**
 * Each gateway tells what it misses, and tells it again when the answer was lost: an operation is noted once, and who comes
 * second waits for the first.
 */
const ONCE = NOTE_LOST.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
  .replace('BEGIN\n', "BEGIN\n  PERFORM pg_advisory_xact_lock(hashtextextended('trivet.note_lost_operations', 0));\n")
  .replace(
    'WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = lost.id)',
    `WHERE NOT EXISTS (SELECT FROM trivet.operation o WHERE o.id = lost.id)
       AND NOT EXISTS (SELECT FROM trivet.audit_entry a
                        WHERE a.tenant_id = lost.tenant AND a.action = 'operation.lose' AND a.subject_id = lost.id::text)`,
  );

export class LostOnce1797210000190 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ONCE);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(NOTE_LOST.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
  }
}
