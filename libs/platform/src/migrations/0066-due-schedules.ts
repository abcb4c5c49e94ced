import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const INDEXES = {
  volume_protection_next: 'trivet.volume_protection (next_run_at)',
  volume_protection_pruned: 'trivet.volume_protection (prune_at) WHERE prune_at IS NOT NULL',
  finding_paused: "trivet.finding (tenant_id) WHERE kind = 'protection_paused'",
};

/** What is due of all tenants, by one look. */
export class DueSchedules1797210000397 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume_protection: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 30 },
    finding: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 30 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const [index, on] of Object.entries(INDEXES)) {
      // What an attempt left that ended half-way is there, and invalid.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS trivet.${index}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${index} ON ${on}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const index of Object.keys(INDEXES)) await runner.query(`DROP INDEX trivet.${index}`);
  }
}
