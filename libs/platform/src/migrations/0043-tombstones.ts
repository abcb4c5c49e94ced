import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Deleted snapshots of a chain, in the order in which they leave it. */
const INDEX = [
  // What an attempt left that ended half-way is there, and invalid.
  'DROP INDEX CONCURRENTLY IF EXISTS trivet.snapshot_tombstone',
  `CREATE INDEX CONCURRENTLY snapshot_tombstone ON trivet.snapshot (tenant_id, updated_at)
    WHERE state = 'gone' AND cut IS NOT NULL AND index_state <> 'pending'`,
];

export class Tombstones1797210000170 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    snapshot: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 10 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of INDEX) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX trivet.snapshot_tombstone');
  }
}
