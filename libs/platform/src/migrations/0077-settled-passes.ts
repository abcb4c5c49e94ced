import type { QueryRunner } from 'typeorm';
import { BY_SNAPSHOT, stepOf } from '#platform/migrations/0066-tally-passes';
import type { Migration } from '#platform/migrations/locks';

/**
 * Numbers are given when a transaction begins to write, and a snapshot's end is behind the last one that has ended: between the two
 * are those that were under way when the pass was opened, and did not see it. This transaction's own number is above them all.
 */
const BY_OWN_NUMBER = 'pg_current_xact_id()';
const replaced = (settled: string): string => stepOf(settled).replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION');

/** A comparison of tallies waits for everybody who may not have seen that it had begun. */
export class SettledPasses1797210000410 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(replaced(BY_OWN_NUMBER));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(replaced(BY_SNAPSHOT));
  }
}
