import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const concurrently = (index: string, on: string): string[] => [
  // What an attempt left that ended half-way is there, and invalid.
  `DROP INDEX CONCURRENTLY IF EXISTS trivet.${index}`,
  `CREATE INDEX CONCURRENTLY ${index} ON ${on}`,
];

/** The audit log by action, of a tenant and over all; and what a pool has promised, from the index alone once more. */
const INDEXES = [
  ...concurrently('audit_entry_action', 'trivet.audit_entry (tenant_id, action COLLATE "C", seq)'),
  ...concurrently('audit_entry_action_of_all', 'trivet.audit_entry (action COLLATE "C", seq)'),
  ...concurrently(
    'volume_promised',
    "trivet.volume (tenant_id, backend_id, pool) INCLUDE (size_bytes, growing_to, state, binned_until) WHERE state <> 'gone'",
  ),
  'DROP INDEX CONCURRENTLY IF EXISTS trivet.volume_reserved',
];

export class ActionIndex1797120000000 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    audit_entry: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 100 },
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of INDEXES) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "CREATE INDEX volume_reserved ON trivet.volume (tenant_id, backend_id, pool) INCLUDE (size_bytes) WHERE state <> 'gone'",
    );
    for (const index of ['volume_promised', 'audit_entry_action_of_all', 'audit_entry_action'])
      await runner.query(`DROP INDEX trivet.${index}`);
  }
}
