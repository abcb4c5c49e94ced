import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Of names by their bytes: so what begins with a text is one range, whatever the database's own order of letters is. */
const INDEXES = {
  volume_search: `trivet.volume (tenant_id, name COLLATE "C", id) WHERE state <> 'gone'`,
  volume_serial: 'trivet.volume (tenant_id, serial_number) WHERE serial_number IS NOT NULL',
  snapshot_search: `trivet.snapshot (tenant_id, name COLLATE "C", id) WHERE state <> 'gone' AND NOT hidden`,
  bucket_search: `trivet.bucket (tenant_id, name COLLATE "C", id) WHERE state <> 'gone'`,
  access_search: `trivet.access (tenant_id, name COLLATE "C", id) WHERE state <> 'gone'`,
  host_search: 'trivet.host (tenant_id, name COLLATE "C", id)',
  host_addresses: 'trivet.host USING gin ((iqns || wwpns || nqns || networks))',
};

/** What people look for by the beginning of a name, by an initiator, an address or a serial number. */
export class Search1797210000803 implements Migration {
  /** An index that is built beside writers cannot be part of one. */
  readonly transaction = false;
  readonly locks: Migration['locks'] = {
    volume: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['scan', 'index'], seconds: 60 },
    snapshot: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    bucket: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
    access: { mode: 'SHARE UPDATE EXCLUSIVE', work: ['index'], seconds: 60 },
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
