import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** A registered bucket carries no tag of ours, and its name may be given to another bucket when its owner deletes it. */
const IDENTITY = `
-- What the store calls this very bucket, whatever its name; of registered ones only. NULL: registered before this was kept,
-- and not looked at since.
ALTER TABLE trivet.bucket ADD COLUMN identity text CHECK (identity IS NULL OR origin = 'registered');
`;

export class BucketIdentity1795824000000 implements Migration {
  readonly locks: Migration['locks'] = {
    bucket: { mode: 'ACCESS EXCLUSIVE', work: ['scan'], seconds: 3 },
  };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(IDENTITY);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.bucket DROP COLUMN identity');
  }
}
