import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** What a pool's host has to do is found without reading what others have; operations on buckets are not in it. */
export class OperationsOfPool1797210000260 implements Migration {
  readonly transaction = false;
  readonly locks: Migration['locks'] = { operation: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['scan'], seconds: 4 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS trivet.operation_of_pool');
    await runner.query(
      `CREATE INDEX CONCURRENTLY operation_of_pool ON trivet.operation (tenant_id, backend_id, pool)
        WHERE finished_at IS NULL AND pool IS NOT NULL`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS trivet.operation_of_pool');
  }
}
