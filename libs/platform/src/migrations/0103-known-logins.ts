import type { QueryRunner } from 'typeorm';
import type { Migration } from '#platform/migrations/locks';

/** By what people tell their logins from one another. Rules: docs/adr/0070. */
export class KnownLogins1797210001810 implements Migration {
  readonly locks: Migration['locks'] = { admin_token: { mode: 'ACCESS EXCLUSIVE', work: [], seconds: 0 } };

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE trivet.admin_token
      -- Of the browser, as it named itself at the login; cut.
      ADD COLUMN user_agent text NOT NULL DEFAULT '',
      -- How a session was opened: password, provider. '': before this was written down, and API tokens.
      ADD COLUMN opened_by text NOT NULL DEFAULT ''`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE trivet.admin_token DROP COLUMN user_agent, DROP COLUMN opened_by');
  }
}
