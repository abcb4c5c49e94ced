import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Few accesses have a key that ends or is to be changed. */
export class KeysThatAreDue1797210000422 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    access: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['scan'], seconds: 4 },
  };

  async up(runner: QueryRunner): Promise<void> {
    // What an attempt left that ended half-way is there, and invalid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS trivet.access_keys_due');
    await runner.query(`CREATE INDEX CONCURRENTLY access_keys_due
      ON trivet.access (least(former_until, rotate_at), tenant_id)
      WHERE state = 'ready' AND key_operation IS NULL AND least(former_until, rotate_at) IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX trivet.access_keys_due');
  }
}
