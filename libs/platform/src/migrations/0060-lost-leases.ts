import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const COLUMNS = `
-- How often in a row a living worker lost the lease without any progress in between, and a digest of that progress (invariant E11).
ALTER TABLE trivet.operation ADD COLUMN losses integer NOT NULL DEFAULT 0, ADD COLUMN lost_progress text;
`;

/** An operation that loses its lease each time waits for a person at last. */
export class LostLeases1797210000340 implements Migration {
  readonly locks: Migration['locks'] = {
    operation: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(COLUMNS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.operation DROP COLUMN losses, DROP COLUMN lost_progress');
  }
}
