import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** Whether a person made a host known: drivers neither change it nor take its initiators for a host of their own. */
export class HostsOfPeople1797210001600 implements Migration {
  readonly locks: Migration['locks'] = { host: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.host ADD COLUMN by_person boolean NOT NULL DEFAULT false');
    await runner.query('GRANT SELECT (by_person) ON trivet.host TO trivet_engine');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.host DROP COLUMN by_person');
  }
}
