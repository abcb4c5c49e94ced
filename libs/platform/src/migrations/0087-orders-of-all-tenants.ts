import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const INDEXES = {
  volume_of_all_by_name: "trivet.volume (name, id) WHERE state <> 'gone'",
  volume_of_all_by_size: "trivet.volume (size_bytes, id) WHERE state <> 'gone'",
  volume_of_all_by_id: "trivet.volume (id) WHERE state <> 'gone'",
  snapshot_of_all_by_id: "trivet.snapshot (id) WHERE state <> 'gone' AND NOT hidden",
  bucket_of_all_by_name: "trivet.bucket (name, id) WHERE state <> 'gone'",
  bucket_of_all_by_id: "trivet.bucket (id) WHERE state <> 'gone'",
  host_of_all_by_name: 'trivet.host (name, id)',
  host_of_all_by_id: 'trivet.host (id)',
};

/** A page of all tenants is read along an index in its order, as one of a tenant is. */
export class OrdersOfAllTenants1797210000802 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 90 },
    snapshot: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 30 },
    bucket: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    host: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
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
