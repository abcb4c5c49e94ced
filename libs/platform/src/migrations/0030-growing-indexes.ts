import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const concurrently = (index: string, on: string): string[] => [
  // What an attempt left that ended half-way is there, and invalid.
  `DROP INDEX CONCURRENTLY IF EXISTS trivet.${index}`,
  `CREATE INDEX CONCURRENTLY ${index} ON ${on}`,
];

/**
 * Exported volumes by the run of the daemon that has them: a look for those that it has not reads them and no others. Whoever
 * wants all of a pool goes by the same index. Snapshots by their volume, which
 * the end of a volume's row asks, as its foreign key does. Copies under way by what they copy, which each deletion asks. And buckets by when they were measured.
 */
const INDEXES = [
  ...concurrently(
    'volume_applied',
    'trivet.volume (tenant_id, backend_id, pool, applied_instance) WHERE tid IS NOT NULL',
  ),
  'DROP INDEX CONCURRENTLY IF EXISTS trivet.volume_exported',
  ...concurrently('volume_copying', "trivet.volume (tenant_id, parent_volume_id) WHERE state = 'creating'"),
  ...concurrently('snapshot_of_volume', 'trivet.snapshot (tenant_id, volume_id)'),
  ...concurrently('bucket_measured', "trivet.bucket (tenant_id, measured_at) WHERE state = 'ready'"),
];

export class GrowingIndexes1797210000040 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 30 },
    snapshot: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    bucket: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 30 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of INDEXES) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE INDEX volume_exported ON trivet.volume (tenant_id, backend_id, pool) WHERE tid IS NOT NULL',
    );
    for (const index of ['bucket_measured', 'snapshot_of_volume', 'volume_applied', 'volume_copying'])
      await runner.query(`DROP INDEX trivet.${index}`);
  }
}
