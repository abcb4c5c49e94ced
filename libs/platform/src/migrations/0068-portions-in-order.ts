import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** The new one, and the one that it takes the place of. */
const INDEXES = [
  {
    name: 'snapshot_hidden_order',
    on: "trivet.snapshot (tenant_id, updated_at, id) WHERE hidden AND state = 'ready'",
    was: { name: 'snapshot_hidden', on: "trivet.snapshot (tenant_id, updated_at) WHERE hidden AND state = 'ready'" },
  },
  {
    name: 'snapshot_in_pool',
    on: "trivet.snapshot (tenant_id, backend_id, pool, id) WHERE state = 'ready'",
    was: { name: 'snapshot_audit', on: "trivet.snapshot (tenant_id, audited_at) WHERE state = 'ready'" },
  },
  {
    name: 'volume_in_pool',
    on: "trivet.volume (tenant_id, backend_id, pool, id) WHERE state IN ('ready', 'binned')",
    was: { name: 'volume_audit', on: "trivet.volume (tenant_id, audited_at) WHERE state IN ('ready', 'binned')" },
  },
];

/** What is gone through by portions stands in its order in an index (ADR 51). There are as many as before: by audited_at nobody looks. */
export class PortionsInOrder1797210000401 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    snapshot: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
  };

  async up(runner: QueryRunner): Promise<void> {
    for (const { name, on, was } of INDEXES) {
      // What an attempt left that ended half-way is there, and invalid.
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS trivet.${name}`);
      await runner.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`);
      await runner.query(`DROP INDEX CONCURRENTLY IF EXISTS trivet.${was.name}`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name, was } of INDEXES) {
      await runner.query(`CREATE INDEX ${was.name} ON ${was.on}`);
      await runner.query(`DROP INDEX trivet.${name}`);
    }
  }
}
