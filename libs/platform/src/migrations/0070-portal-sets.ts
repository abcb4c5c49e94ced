import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** A pool of a cluster may be exported by several daemons, one for each set of its portals; `portals` has all of them as before. */
export class PortalSets1797210000403 implements Migration {
  readonly locks: Migration['locks'] = { pool: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE trivet.pool ADD portal_sets jsonb NOT NULL DEFAULT '[]'");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.pool DROP portal_sets');
  }
}
