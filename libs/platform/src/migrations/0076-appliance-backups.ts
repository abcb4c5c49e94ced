import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

const BACKUPS = `
-- When the appliance itself was backed up, and to which file of which host: an upgrade asks for a recent one. Of the owner
-- alone, who writes backups and migrates.
CREATE TABLE trivet.appliance_backup (
  taken_at timestamptz NOT NULL DEFAULT now() PRIMARY KEY,
  release  text NOT NULL,
  host     text NOT NULL,
  file     text NOT NULL,
  rows     bigint NOT NULL,
  bytes    bigint NOT NULL
);
`;

export class ApplianceBackups1797210000409 implements Migration {
  readonly locks: Migration['locks'] = {};

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(BACKUPS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE trivet.appliance_backup');
  }
}
