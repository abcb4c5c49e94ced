import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** How far the audit of a pool has come, and when one last came to its end. */
const PLACES = 'ALTER TABLE trivet.pool ADD COLUMN audit_place jsonb, ADD COLUMN audited_at timestamptz';

export class AuditPlaces1797210000185 implements Migration {
  readonly locks: Migration['locks'] = { pool: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(PLACES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.pool DROP COLUMN audit_place, DROP COLUMN audited_at');
  }
}
