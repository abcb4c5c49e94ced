import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Whoever looks at clusters is told how many sessions each has open: counted by an index, not among all of the tenant. */
export class SessionsByCluster1797210000420 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    snapshot_session: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['scan'], seconds: 4 },
  };

  async up(runner: QueryRunner): Promise<void> {
    // What an attempt left that ended half-way is there, and invalid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS trivet.snapshot_session_by_cluster');
    await runner.query(`CREATE INDEX CONCURRENTLY snapshot_session_by_cluster
      ON trivet.snapshot_session (tenant_id, cluster_id, expires_at) WHERE cluster_id IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX trivet.snapshot_session_by_cluster');
  }
}
