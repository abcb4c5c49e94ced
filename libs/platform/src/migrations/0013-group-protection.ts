import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** A volume group's protection template protects its members; snapshot groups keep the config that they were made with. */
const GROUP_PROTECTION = `
ALTER TABLE trivet.volume_group ADD COLUMN protection_template text,
  ADD FOREIGN KEY (tenant_id, protection_template) REFERENCES trivet.protection_template (tenant_id, name);
-- Not the volume's own template: it goes when the volume leaves its group.
ALTER TABLE trivet.volume_protection ADD COLUMN by_group boolean NOT NULL DEFAULT false;
ALTER TABLE trivet.snapshot_group ADD COLUMN config jsonb NOT NULL DEFAULT '{}';
`;

export class GroupProtection1796083200000 implements Migration {
  readonly locks: Migration['locks'] = {
    protection_template: { mode: 'SHARE ROW EXCLUSIVE', work: [], seconds: 0 },
    snapshot_group: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
    volume_group: { mode: 'ACCESS EXCLUSIVE', work: ['scan'], seconds: 8 },
    volume_protection: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(GROUP_PROTECTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE trivet.snapshot_group DROP COLUMN config;
      ALTER TABLE trivet.volume_protection DROP COLUMN by_group;
      ALTER TABLE trivet.volume_group DROP COLUMN protection_template`);
  }
}
